//! Where plugins come from: the table of built-ins.

use std::path::Path;

use nano_cordis::cordis::{
    BoxError, Builtins, Context, ModuleError, ModuleKey, ModuleSource, NoConfig, PluginDef, plugin,
};

fn idle() -> PluginDef {
    plugin(async |_: Context, _: NoConfig| Ok::<(), BoxError>(()))
}

fn builtins() -> Builtins {
    Builtins::new().with("llm-openai", idle()).with("approval", idle().guard()).with("hmr", idle())
}

fn resolve(name: &str) -> Result<String, String> {
    let key = builtins().resolve(name, Path::new("."));
    key.map(|it| it.to_string()).map_err(|err| err.to_string())
}

#[test]
fn a_built_in_is_found_by_its_name() {
    let def = builtins().load(&ModuleKey("approval".into())).unwrap();

    assert_eq!(resolve("approval").as_deref(), Ok("approval"));
    assert_eq!(def.name(), "approval");
    assert!(def.is_guard());
}

#[test]
fn the_names_of_the_original_mean_the_built_ins() {
    assert_eq!(resolve("./src/harness/llm-openai.ts").as_deref(), Ok("llm-openai"));
    assert_eq!(resolve("./src/cordis/hmr.ts").as_deref(), Ok("hmr"));
    assert!(resolve("./src/harness/llm/llm-openai.ts").is_err());
    assert!(resolve("./llm-openai.ts").is_err());
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_one() {
    let near = "no plugin is named `llm-opena` (did you mean `llm-openai`?)";
    let original = "no plugin is named `./src/harness/aproval.ts` (did you mean `approval`?)";

    assert_eq!(resolve("llm-opena").unwrap_err(), near);
    assert_eq!(resolve("./src/harness/aproval.ts").unwrap_err(), original);
    assert_eq!(resolve("hat").unwrap_err(), "no plugin is named `hat`");
    assert_eq!(resolve("something-else").unwrap_err(), "no plugin is named `something-else`");
}

#[test]
fn a_built_in_has_no_files_and_an_unknown_key_no_plugin() {
    let missing = builtins().load(&ModuleKey("tools".into()));

    assert!(builtins().files(&ModuleKey("hmr".into())).is_empty());
    assert!(matches!(missing, Err(ModuleError::Unknown { .. })));
}

#[test]
fn a_plugin_can_take_the_place_of_a_built_in() {
    let own = builtins().with("approval", idle());

    assert!(!own.load(&ModuleKey("approval".into())).unwrap().is_guard());
    assert_eq!(own.names().collect::<Vec<_>>(), ["approval", "hmr", "llm-openai"]);
}
