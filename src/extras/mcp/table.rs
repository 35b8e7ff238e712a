//! The tools of a server in the table of all tools, and what will change there with the next turn.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    offer::{Offer, Offers},
    server::Server,
};
use crate::{
    cordis::{Context, Svc, Undo, Warning},
    harness::tools::Tools,
};

/// A server that gives cause for more complaints is not told of each.
const COMPLAINTS: usize = 20;

/// What of this server is in the table.
pub(super) struct Table {
    ctx: Context,
    server: Rc<Server>,
    tools: Svc<Tools>,
    held: RefCell<BTreeMap<String, (Offer, Undo)>>,
    news: RefCell<Option<Offers>>,
    /// What was complained about.
    told: RefCell<BTreeSet<String>>,
}

impl Table {
    pub(super) fn new(ctx: &Context, server: &Rc<Server>, tools: Svc<Tools>) -> Self {
        Self {
            ctx: ctx.clone(),
            server: Rc::clone(server),
            tools,
            held: RefCell::default(),
            news: RefCell::default(),
            told: RefCell::default(),
        }
    }

    /// Keeps a list for the next turn.
    pub(super) fn later(&self, offers: Offers) {
        self.news.replace(Some(offers));
    }

    /// A turn begins.
    pub(super) fn settle_news(&self) {
        let news = self.news.take();
        if let Some(offers) = news {
            self.settle(offers);
        }
    }

    /// Makes the table equal to the list. What has not changed stays where it is, so nobody hears of it.
    pub(super) fn settle(&self, Offers { tools, complaints, .. }: Offers) {
        let stays = |(_, (held, _)): &(String, (Offer, Undo))| tools.contains(held);
        let (same, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.held.take().into_iter().partition(stays);
        self.held.replace(same);
        for (_, undo) in gone.into_values() {
            // The cleanup of a tool is done when this returns, and has nothing that can fail.
            drop(undo.call());
        }
        for offer in tools {
            if !self.held.borrow().contains_key(&offer.name) {
                self.add(offer);
            }
        }
        for complaint in complaints {
            self.complain(&complaint);
        }
    }

    fn add(&self, offer: Offer) {
        match self.tools.register(self.server.tool(&offer)) {
            Ok(undo) => drop(self.held.borrow_mut().insert(offer.name.clone(), (offer, undo))),
            Err(err) => self.complain(&format!("the tool `{}` is left out: {err}", offer.name)),
        }
    }

    /// Says it once, however often the server is started.
    fn complain(&self, text: &str) {
        let told = self.told.borrow().len();
        if told > COMPLAINTS || self.told.borrow().contains(text) {
            return;
        }
        let text = if told == COMPLAINTS { "there is more that does not fit" } else { text };
        self.told.borrow_mut().insert(text.to_owned());
        self.ctx.emit(&Warning(format!("mcp `{}`: {text}", self.server.name)));
    }
}
