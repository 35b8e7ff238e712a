//! What a configuration may say.

use nano_cordis::{cordis::plugin, harness::llm_openai};
use serde_json::{Value, json};

/// The fault of a configuration, in words.
fn fault(change: &Value) -> Option<String> {
    let mut config = json!({"baseUrl": "https://host/v1", "model": "m", "apiKeyEnv": "MY_KEY"});
    config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    plugin(llm_openai::apply).check(&config).err().map(|err| err.to_string())
}

#[test]
fn an_ordinary_configuration_has_no_fault() {
    let all = json!({
        "emptyContent": "null", "reasoning": "drop", "maxTokens": 1, "maxTokensField": "x", "body": {"thinking": {"type": "disabled"}},
        "connectTimeoutMs": 1, "firstByteTimeoutMs": 1, "silenceTimeoutMs": 1, "keepAliveLimitMs": 1,
        "stream": false, "retries": 0,
    });

    assert_eq!(
        [fault(&json!({})), fault(&all), fault(&json!({"apiKeyEnv": null}))],
        [None, None, None]
    );
}

#[test]
fn a_fault_names_its_field() {
    for (change, field) in [
        (json!({"baseUrl": "host/v1"}), "baseUrl"),
        (json!({"baseUrl": "https://me:pw@host"}), "baseUrl"),
        (json!({"baseUrl": null}), "baseUrl"),
        (json!({"model": 7}), "model"),
        (json!({"reasoning": "maybe"}), "reasoning"),
        (json!({"emptyContent": "x"}), "emptyContent"),
        (json!({"maxTokens": 0}), "maxTokens"),
        (json!({"firstByteTimeoutMs": 0}), "firstByteTimeoutMs"),
        (json!({"keepAliveLimitMs": 0}), "keepAliveLimitMs"),
        (json!({"retries": 101}), "retries"),
        (json!({"retries": -1}), "retries"),
        (json!({"stream": "no"}), "stream"),
        (json!({"body": {"messages": []}}), "body.messages"),
        (json!({"body": {"stream": true}}), "body.stream"),
        (json!({"body": []}), "body"),
    ] {
        let fault = fault(&change).unwrap_or_default();

        assert!(fault.contains(field), "{change}: {fault}");
    }
}

#[test]
fn h_102_a_key_in_place_of_the_name_of_its_variable_is_refused_and_not_shown() {
    let fault = fault(&json!({"apiKeyEnv": "sk-0123456789"})).unwrap();

    assert!(fault.contains("apiKeyEnv") && !fault.contains("0123"), "{fault}");
}
