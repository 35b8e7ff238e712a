//! Part of `script`: values on their way between a script and the rest, which is JSON and nothing else.
//!
//! Watch for: what JSON cannot say is refused with its path. Dropping it silently, as `JSON.stringify` does, would hide a
//! mistake until somebody misses the value.

// Differs: JSON has whole numbers of any size, a script has none beyond 2^53. Such a number comes in as the nearest one
// that a script can have; `-0` goes out as 0, and a hole in a list as null.

use rquickjs::{Ctx, Error, FromJs, Object, Value, atom::PredefinedAtom, function::This};
use serde_json::{Map, Number, Value as Json};

/// What JSON, and everything that is built on it, can still read back.
const DEEPEST: usize = 100;
/// A value that is larger than this as a text was not meant to be one. It may well be small in the script, where many
/// parts of it can be the same.
const LARGEST: usize = 16 << 20;
/// Beyond it a double does not tell neighbouring whole numbers apart.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
/// Things whose content is not in their properties.
const OPAQUE: [&str; 13] = [
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "WeakRef",
    "Promise",
    "RegExp",
    "ArrayBuffer",
    "SharedArrayBuffer",
    "DataView",
    "TypedArray",
    "Iterator",
    "Error",
];

/// A JSON text as a value of the engine.
pub(super) fn to_js<'js>(ctx: &Ctx<'js>, text: &str) -> rquickjs::Result<Value<'js>> {
    ctx.json_parse(text)
}

/// A value of the engine as JSON; the error says which part of it is none. Nothing becomes null.
pub(super) fn from_js(value: &Value<'_>) -> Result<Json, String> {
    Walk::default().read(value)
}

/// The same of each argument of a call.
pub(super) fn list_from_js(values: &[Value<'_>]) -> Result<Vec<Json>, String> {
    let mut walk = Walk::default();
    values.iter().map(|it| walk.read(it)).collect()
}

#[derive(Default)]
struct Walk<'js> {
    path: Vec<String>,
    above: Vec<Value<'js>>,
    size: usize,
}

impl<'js> Walk<'js> {
    fn read(&mut self, value: &Value<'js>) -> Result<Json, String> {
        self.grow(8)?;
        if value.is_null() || value.is_undefined() {
            return Ok(Json::Null);
        }
        if let Some(it) = value.as_bool() {
            return Ok(Json::Bool(it));
        }
        if let Some(it) = value.as_int() {
            return Ok(it.into());
        }
        if let Some(it) = value.as_float() {
            return self.number(it);
        }
        if let Some(it) = value.as_string() {
            let text = it.to_string().map_err(|_| self.refuse("half of a surrogate pair"))?;
            self.grow(text.len())?;
            return Ok(Json::String(text));
        }
        if value.is_function() {
            return Err(self.refuse("a function"));
        }
        if value.is_big_int() {
            return Err(self.refuse("a BigInt (a number or a text would do)"));
        }
        match value.as_object() {
            Some(object) => self.nested(value, object),
            None => Err(self.refuse(&format!("a {}", value.type_name()))),
        }
    }

    fn number(&self, it: f64) -> Result<Json, String> {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
        if it.fract() == 0.0 && it.abs() <= LARGEST_EXACT {
            return Ok(Json::from(it as i64));
        }
        Number::from_f64(it).map(Json::Number).ok_or_else(|| self.refuse(&it.to_string()))
    }

    fn nested(&mut self, value: &Value<'js>, object: &Object<'js>) -> Result<Json, String> {
        if self.above.contains(value) {
            return Err(self.refuse("part of itself"));
        }
        if self.above.len() >= DEEPEST {
            return Err(self.refuse(&format!("more than {DEEPEST} levels deep")));
        }
        if value.is_proxy() {
            return Err(self.refuse("a context, a service or another proxy"));
        }
        self.above.push(value.clone());
        let read = match object.as_array() {
            Some(_) => self.list(object),
            None => self.map(object),
        };
        self.above.pop();
        read
    }

    fn list(&mut self, object: &Object<'js>) -> Result<Json, String> {
        // The engine has lists longer than its own count of them holds.
        let length = object.get::<_, f64>(PredefinedAtom::Length);
        let length = length.map_err(|err| self.unreadable(object.ctx(), &err))?;
        let mut list = Vec::new();
        for at in (0..u32::MAX).take_while(|it| f64::from(*it) < length) {
            let item = object.get::<_, Value<'js>>(at);
            let item = item.map_err(|err| self.unreadable(object.ctx(), &err))?;
            list.push(self.at(at.to_string(), |walk| walk.read(&item))?);
        }
        Ok(Json::Array(list))
    }

    fn map(&mut self, object: &Object<'js>) -> Result<Json, String> {
        if let Some(own) = self.own_json(object)? {
            return self.read(&own);
        }
        if let Some(kind) = opaque(object) {
            return Err(self.refuse(&kind));
        }
        let mut map = Map::new();
        for key in object.keys::<rquickjs::String<'js>>() {
            let key = key.map_err(|err| self.unreadable(object.ctx(), &err))?;
            let name =
                key.to_string().map_err(|_| self.refuse("named by half of a surrogate pair"))?;
            self.grow(name.len())?;
            let read = self.at(name.clone(), |walk| {
                let value = object.get::<_, Value<'js>>(key);
                let value = value.map_err(|err| walk.unreadable(object.ctx(), &err))?;
                if value.is_undefined() { Ok(None) } else { walk.read(&value).map(Some) }
            })?;
            map.extend(read.map(|it| (name, it)));
        }
        Ok(Json::Object(map))
    }

    /// What the value itself wants to be as JSON: a date is a text.
    fn own_json(&self, object: &Object<'js>) -> Result<Option<Value<'js>>, String> {
        let method = object.get::<_, Value<'js>>(PredefinedAtom::ToJSON);
        let method = method.map_err(|err| self.unreadable(object.ctx(), &err))?;
        let Some(method) = method.into_function() else { return Ok(None) };
        let own = method.call((This(object.clone()),));
        own.map(Some).map_err(|err| self.unreadable(object.ctx(), &err))
    }

    fn at<T>(
        &mut self,
        key: String,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.path.push(key);
        let outcome = read(self);
        self.path.pop();
        outcome
    }

    fn grow(&mut self, by: usize) -> Result<(), String> {
        self.size += by;
        if self.size <= LARGEST {
            return Ok(());
        }
        // Where it is passed says nothing.
        self.path.clear();
        Err(self.refuse(&format!("larger than {} MiB", LARGEST >> 20)))
    }

    fn refuse(&self, what: &str) -> String {
        if self.path.is_empty() {
            return format!("it is {what}, which cannot leave its script");
        }
        format!("`{}` is {what}, which cannot leave its script", self.path.join("."))
    }

    /// Reading a property may run code of the script.
    fn unreadable(&self, ctx: &Ctx<'js>, err: &Error) -> String {
        let thrown = err.is_exception().then(|| ctx.catch());
        let thrown = thrown.as_ref().and_then(Value::as_object).map(|it| it.get("message"));
        let why = match thrown {
            Some(Ok(message)) => message,
            Some(Err(_)) => {
                ctx.catch();
                String::new()
            }
            None => err.to_string(),
        };
        self.refuse(&format!("unreadable ({why})"))
    }
}

/// What an object is whose properties do not say what is in it. What counts is its ancestry, not what it has itself: that
/// may be data.
fn opaque(object: &Object<'_>) -> Option<String> {
    if object.is_error() {
        return Some("an Error (throw it, or pass its message)".to_owned());
    }
    let mut ancestor = object.get_prototype();
    // A chain of more is none that anybody wrote.
    for _ in 0..16 {
        let kind = class_of(ancestor.as_ref()?);
        if let Some(kind) = kind.filter(|it| OPAQUE.contains(&it.as_str())) {
            let article = if kind.starts_with(['A', 'I']) { "an" } else { "a" };
            return Some(format!("{article} {kind}"));
        }
        ancestor = ancestor?.get_prototype();
    }
    None
}

/// The name of the class whose prototype this is.
fn class_of(prototype: &Object<'_>) -> Option<String> {
    if prototype.as_value().is_proxy() {
        return None;
    }
    let ctx = prototype.ctx();
    let read = || {
        let class = prototype.get::<_, Value<'_>>(PredefinedAtom::Constructor)?;
        let name = class.into_object().map(|it| it.get::<_, Value<'_>>(PredefinedAtom::Name));
        name.transpose()?.map(|it| String::from_js(ctx, it)).transpose()
    };
    read().inspect_err(|_| drop(ctx.catch())).ok().flatten()
}
