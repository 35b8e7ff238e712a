//! The local shell: what commands are not given, and what of their output nobody is shown.

use std::fs;

use nano_cordis::{
    cordis::{Next, plugin},
    harness::{
        env::Env,
        llm_openai,
        shell::{ShellEnv, ShellError},
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::rig::{Rig, plain, shell, shell_in};

#[test]
fn h_136_names_that_look_secret_are_kept_from_commands() {
    let vars = [
        ("MY_api_KEY", "1"),
        ("GitHub_Token", "2"),
        ("db_passwd", "3"),
        ("CREDENTIALS", "4"),
        ("PLAIN", "5"),
        ("PASS_KEY", "6"),
    ];
    shell_in(json!({ "passEnv": ["PASS_KEY"] }), vars, async |rig| {
        let result = rig
            .run("echo \"[$MY_api_KEY$GitHub_Token$db_passwd$CREDENTIALS$PLAIN$PASS_KEY]\"")
            .await;

        assert_eq!(result.stdout.text, "[56]\n");
    });
}

#[test]
fn h_136_a_plugin_takes_its_own_variable_out_but_the_user_has_the_last_word() {
    let vars = [("MINE", "1"), ("NAMED", "2"), ("PLAIN", "3")];
    shell_in(json!({ "passEnv": ["NAMED"] }), vars, async |rig| {
        let take_out = async |_, _, next: Next<ShellEnv>| {
            let mut vars = next.run().await?;
            vars.retain(|name, _| name != "MINE" && name != "NAMED");
            Ok(vars)
        };
        rig.ctx.intercept::<ShellEnv>(take_out).unwrap();

        let result = rig.run("echo \"[$MINE$NAMED$PLAIN]\"").await;

        assert_eq!(result.stdout.text, "[23]\n");
    });
}

#[test]
fn h_136_the_variable_of_the_models_key_is_kept_from_commands_whatever_its_name() {
    shell_in(json!({}), [("MY_ACCESS", "sesame"), ("PLAIN", "1")], async |rig| {
        let config =
            json!({ "baseUrl": "http://127.0.0.1:9", "model": "m", "apiKeyEnv": "MY_ACCESS" });
        let model = rig.ctx.plugin(&plugin(llm_openai::apply), config).unwrap();
        model.ready().await.unwrap();

        let result = rig.run("echo \"[$MY_ACCESS$PLAIN]\"").await;

        assert_eq!(result.stdout.text, "[1]\n");
    });
}

#[test]
fn h_136_a_copy_of_the_key_under_another_name_is_kept_from_commands_too() {
    let vars = [
        ("MY_ACCESS", "sesame-123456"),
        ("COPY", "sesame-123456"),
        ("ADDRESS", "https://a/?k=sesame-123456"),
        ("PLAIN", "1"),
    ];
    shell_in(json!({}), vars, async |rig| {
        let config =
            json!({ "baseUrl": "http://127.0.0.1:9", "model": "m", "apiKeyEnv": "MY_ACCESS" });
        let model = rig.ctx.plugin(&plugin(llm_openai::apply), config).unwrap();
        model.ready().await.unwrap();

        let everywhere = "env; export -p; tr '\\0' '\\n' < /proc/self/environ; ps ewwp $$";
        let result = rig.run(&format!("{everywhere}; echo [$PLAIN]")).await;

        assert!(!result.stdout.text.contains("sesame"), "{}", result.stdout.text);
        assert!(result.stdout.text.ends_with("[1]\n"));
    });
}

#[test]
fn h_136_a_plugin_that_fails_to_take_its_variable_out_keeps_the_command_from_running() {
    shell(plain(), async |rig| {
        rig.ctx.intercept::<ShellEnv>(async |_, _, _| Err("broken".into())).unwrap();

        let result = rig.try_run(&rig.request("touch ran"), CancellationToken::new()).await;

        assert!(matches!(result, Err(ShellError::Environment { .. })));
        assert!(!rig.path("ran").exists());
    });
}

const KEY: &str = "sk-0123456789abcdef";

/// The adapter of a model, whose key is in `MY_ACCESS`.
async fn mount_model(rig: &Rig) {
    let config = json!({ "baseUrl": "http://127.0.0.1:9", "model": "m", "apiKeyEnv": "MY_ACCESS" });
    let model = rig.ctx.plugin(&plugin(llm_openai::apply), config).unwrap();
    model.ready().await.unwrap();
}

#[test]
fn h_136_the_models_key_is_masked_in_the_file_of_a_long_output_also_when_it_comes_in_two_pieces() {
    shell_in(json!({ "passEnv": ["MY_ACCESS"] }), [("MY_ACCESS", KEY)], async |rig| {
        mount_model(&rig).await;
        let mut bell = rig.bell();
        let command = "head -c 50000 /dev/zero | tr '\\0' x; echo \"<$MY_ACCESS>\"
            printf \"<${MY_ACCESS:0:9}\"; echo > bell; read < go; printf \"${MY_ACCESS:9}>\"";

        let (result, ()) = tokio::join!(rig.run(command), async {
            bell.rung().await;
            bell.go();
        });

        let kept = fs::read_to_string(result.stdout.file.unwrap()).unwrap();
        assert_eq!(kept, "x".repeat(50_000) + "<***>\n<***>");
        assert!(result.stdout.text.ends_with("x<***>\n<***>"));
    });
}

#[test]
fn h_136_half_a_key_is_not_what_is_left_of_it_where_output_is_cut() {
    shell_in(json!({ "passEnv": ["MY_ACCESS"] }), [("MY_ACCESS", KEY)], async |rig| {
        mount_model(&rig).await;
        let cut = "head -c 19990 /dev/zero; printf \"$MY_ACCESS\"; head -c 19990 /dev/zero;";

        let text = rig.run(cut).await.stdout.text;

        assert!(text.contains("\0***\0") && !text.contains(&KEY[..4]), "{text:?}");
    });
}

#[test]
fn h_136_what_looks_like_the_beginning_of_the_key_to_the_end_is_shown() {
    shell_in(json!({ "passEnv": ["MY_ACCESS"] }), [("MY_ACCESS", KEY)], async |rig| {
        mount_model(&rig).await;

        assert_eq!(rig.run("printf \"a ${MY_ACCESS:0:3}\"").await.stdout.text, "a sk-");
    });
}

#[test]
fn h_136_a_key_is_a_secret_as_long_as_its_model_is_mounted() {
    shell_in(plain(), [("MY_ACCESS", KEY)], async |rig| {
        let secrets = || rig.ctx.get::<Env>().unwrap().secrets().len();
        let config =
            json!({ "baseUrl": "http://127.0.0.1:9", "model": "m", "apiKeyEnv": "MY_ACCESS" });
        let model = rig.ctx.plugin(&plugin(llm_openai::apply), config).unwrap();
        model.ready().await.unwrap();
        let mounted = secrets();

        model.dispose().await;

        assert_eq!((mounted, secrets()), (1, 0));
    });
}
