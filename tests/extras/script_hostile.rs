//! Scripts that want harm, or do it unasked: the agent lives, and what it says names them.

use serde_json::json;

use crate::script::{run, tool};

/// A schema of which each part asks for the next one twice.
const TWICE: &str = "const defs = { last: { type: 'object' } }
for (let at = 0; at < 40; at++) {
  const next = { $ref: '#/$defs/' + (at < 39 ? `d${at + 1}` : 'last') }
  defs[`d${at}`] = { anyOf: [next, next] }
}
const twice = { type: 'object', $defs: defs, $ref: '#/$defs/d0' }
";

#[test]
fn what_the_engine_keeps_of_errors_cannot_be_overwritten() {
    run(async |app| {
        app.tools().await;
        let body = "
  for (const value of [{}, [], () => [{}]]) {
    Error.stackTraceLimit = value
    Error.prepareStackTrace = value
    try { null.x } catch (error) { globalThis.kept = error.stack }
  }
  throw new Error('as usual')";
        let mount = app.mount(&tool(body)).await;

        let said = app.call("probe").await;
        mount.dispose().await;

        assert!(said.starts_with("Error: probe.ts:9:") && said.ends_with(": as usual"), "{said}");
    });
}

#[test]
fn a_trace_that_the_script_wrote_itself_is_not_read_for_ever() {
    run(async |app| {
        app.tools().await;
        let body = "
  const line = `    at f (${import.meta.url.slice(7)}:999999:1)\\n`
  console.error(Object.assign(new Error('x'), { stack: line.repeat(2e5) }))
  return 'printed'";
        let padding = "x".repeat(900_000);
        app.mount(&format!("{}\nexport const last = '{padding}'", tool(body))).await;

        assert_eq!(app.call("probe").await, "printed");
    });
}

#[test]
fn a_schema_that_asks_for_more_checks_than_there_is_time_for_is_none() {
    run(async |app| {
        app.tools().await;
        let body = "
  ctx.tools.register('twice', '', twice, () => 'ran')
  return (await ctx.tools.execute('twice', { a: 1 })).content";
        app.mount(&format!("{TWICE}{}", tool(body))).await;
        let config = format!("{TWICE}export const Config = twice\nexport function apply() {{}}");
        let def = app.def(config).unwrap();

        let said = app.call("probe").await;
        let mount = app.root.plugin_named("config", &def, json!({})).unwrap();
        let refused = mount.ready().await.unwrap_err().to_string();

        let expected = "the schema of this tool asks for more checks of these arguments";
        assert!(said.contains(expected), "{said}");
        assert!(refused.contains("its schema refers to itself too often"), "{refused}");
        assert_eq!(app.reports().len(), 1);
    });
}
