//! Services whose type the reader does not know: what scripts read.

use std::any::Any;

use super::{Provision, Svc};
use crate::cordis::context::Context;
use crate::cordis::error::Error;

impl Context {
    /// As [`service_named`](Self::service_named), of any type: what is behind it is an `Rc` of the service.
    pub fn service_any(&self, name: &str) -> Result<Svc<dyn Any>, Error> {
        self.find(name).map(|provision| self.view_any(&provision))
    }

    /// As [`get_named`](Self::get_named), of any type.
    pub fn get_any(&self, name: &str) -> Option<Svc<dyn Any>> {
        self.kernel.current(name).map(|provision| self.view_any(&provision))
    }

    fn view_any(&self, provision: &Provision) -> Svc<dyn Any> {
        Svc {
            value: provision.value.clone(),
            ctx: Self { origin: provision.owner, ..self.clone() },
        }
    }
}
