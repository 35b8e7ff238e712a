//! The model in scripts: asking it, being it, and running a turn.

use std::{cell::RefCell, rc::Rc};

use nano_cordis::harness::{
    llm::{Delta, Llm, LlmError, Request},
    session::message::{Header, Message},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::script_world::run;

const MODEL: &str = "export function apply(ctx) {
  ctx.provide('llm', {
    model: 'mine',
    async chat({ model, system, messages, tools }, onDelta, signal) {
      const { content } = messages.at(-1)
      if (content === 'text') return 'just text'
      if (content === 'wrong') throw Object.assign(new Error('overloaded'), { status: 529 })
      if (content === 'odd') throw new Error('odd')
      if (content === 'none') return undefined
      if (content === 'wait') return new Promise(() => { onDelta('waits'); signal.addEventListener('abort', () => ctx.emit('cordis/notice', 'aborted')) })
      onDelta('he'); onDelta({ type: 'reasoning', text: 'hm' })
      return { message: { role: 'assistant', content: `${model} ${system} ${tools.length}` }, finishReason: 'stop', usage: { total: 3 } }
    },
  })
}";

#[test]
fn a_script_can_be_the_model() {
    run(async |world| {
        world.script("model.js", MODEL).await;
        let llm = world.root.get::<dyn Llm>().unwrap();
        let deltas: Rc<RefCell<Vec<Delta>>> = Rc::default();
        let ask = |text: &str, cancel: CancellationToken| {
            let header = Header::new(llm.model(), "be", Vec::new());
            let request = Request { header, messages: vec![Message::user(text)] };
            let seen = deltas.clone();
            llm.chat(Rc::new(request), Rc::new(move |it| seen.borrow_mut().push(it)), cancel)
        };

        let whole = ask("hello", CancellationToken::new()).await.unwrap();
        let text = ask("text", CancellationToken::new()).await.unwrap();
        let wrong = ask("wrong", CancellationToken::new()).await.unwrap_err();
        let odd = ask("odd", CancellationToken::new()).await.unwrap_err();
        let none = ask("none", CancellationToken::new()).await.unwrap_err();
        let cancel = CancellationToken::new();
        let stop = async {
            while !deltas.borrow().contains(&Delta::Text("waits".into())) {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (cancelled, ()) = tokio::join!(ask("wait", cancel.clone()), stop);

        assert_eq!(whole.message.content.as_deref(), Some("mine be 0"));
        assert_eq!(
            (whole.finish_reason.as_deref(), whole.usage),
            (Some("stop"), Some(json!({ "total": 3 })))
        );
        assert_eq!(text.message.content.as_deref(), Some("just text"));
        assert!(
            matches!(&wrong, LlmError::Status { status: 529, message } if message.contains("model.js:7:") && message.contains("overloaded")),
            "{wrong:?}"
        );
        assert!(matches!(&odd, LlmError::Script(message) if message.contains("odd")), "{odd:?}");
        assert!(matches!(none, LlmError::BadReply(_)), "{none:?}");
        assert_eq!(cancelled.unwrap_err(), LlmError::Cancelled);
        assert_eq!(deltas.borrow()[..2], [Delta::Text("he".into()), Delta::Reasoning("hm".into())]);
        world.until("aborted").await;
    });
}

#[test]
fn a_script_can_ask_the_model_and_run_a_turn() {
    run(async |world| {
        world.plugins(&["session", "prompt", "tools"]).await;
        world
            .script("model.js", "export function apply(ctx) { ctx.provide('llm', { model: 'mine', chat: async ({ messages }, onDelta) => { onDelta('d'); return `to ${messages.at(-1).content}` } }) }")
            .await;
        world.plugins(&["agent-loop"]).await;
        world
            .script(
                "asks.js",
                "export const inject = ['llm', 'agentLoop', 'session']
                 export async function apply(ctx) {
                   const note = text => ctx.emit('cordis/notice', text)
                   const { message } = await ctx.llm.chat({ messages: [{ role: 'user', content: 'hi' }] }, delta => note(delta.text))
                   note(`${ctx.llm.model} ${message.content}`)
                   const session = ctx.session.create()
                   const outcome = await ctx.agentLoop.run(session, 'go')
                   note(`${outcome.reason} ${outcome.text} ${session.deriveMessages().length} ${session.header.model} ${ctx.agentLoop.isBusy(session)} ${ctx.session.open().length}`)
                   session.append('mine/fact', { a: 1 })
                   note(JSON.stringify(session.events.at(-1).data))
                   const stopped = new AbortController()
                   stopped.abort()
                   await ctx.agentLoop.run(session, 'go', stopped.signal).catch(error => note(error.message))
                 }",
            )
            .await;

        assert_eq!(
            world.noted(),
            ["d", "mine to hi", "completed to go 2 mine false 1", "{\"a\":1}", "aborted"]
        );
    });
}
