//! Part of `script`: values on their way between a script and the rest, which is JSON and nothing else.
//!
//! Watch for: what JSON cannot say is refused with its path. Dropping it silently, as `JSON.stringify` does, would hide a
//! mistake until somebody misses the value.

use rquickjs::{Ctx, Error, FromJs, Object, Value, atom::PredefinedAtom, function::This};
use serde_json::{Map, Number, Value as Json};

/// What JSON, and everything that is built on it, can still read back.
const DEEPEST: usize = 100;
/// Beyond it a double does not tell neighbouring whole numbers apart.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
/// Things whose content is not in their properties.
const OPAQUE: [&str; 8] =
    ["Map", "Set", "WeakMap", "WeakSet", "Promise", "RegExp", "ArrayBuffer", "Proxy"];

/// A JSON value as one of the engine.
pub(super) fn to_js<'js>(ctx: &Ctx<'js>, value: &Json) -> rquickjs::Result<Value<'js>> {
    ctx.json_parse(value.to_string())
}

/// A value of the engine as JSON; the error says which part of it is none. Nothing becomes null.
pub(super) fn from_js(value: &Value<'_>) -> Result<Json, String> {
    Walk { path: Vec::new(), above: Vec::new() }.read(value)
}

struct Walk<'js> {
    path: Vec<String>,
    above: Vec<Value<'js>>,
}

impl<'js> Walk<'js> {
    fn read(&mut self, value: &Value<'js>) -> Result<Json, String> {
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
            let text = it.to_string();
            return text.map(Json::String).map_err(|_| self.refuse("half of a surrogate pair"));
        }
        if value.is_function() {
            return Err(self.refuse("a function"));
        }
        if value.is_big_int() {
            return Err(self.refuse("a BigInt; a number or a text would do"));
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
            return Err(self.refuse("a context or a service"));
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
        let Some(array) = object.as_array() else { return Ok(Json::Null) };
        let each = (0..array.len()).map(|at| {
            let item: Value<'js> = array.get(at).map_err(|err| self.unreadable(&err))?;
            self.at(at.to_string(), |walk| walk.read(&item))
        });
        each.collect::<Result<_, _>>().map(Json::Array)
    }

    fn map(&mut self, object: &Object<'js>) -> Result<Json, String> {
        if let Some(own) = self.own_json(object)? {
            return self.read(&own);
        }
        let kind = kind_of(object).unwrap_or_default();
        if OPAQUE.contains(&kind.as_str()) || kind.ends_with("Array") {
            return Err(self.refuse(&format!("a {kind}")));
        }
        let mut map = Map::new();
        for property in object.props::<rquickjs::String<'js>, Value<'js>>() {
            let (key, value) = property.map_err(|err| self.unreadable(&err))?;
            let key = key.to_string().map_err(|_| self.refuse("named by half of a surrogate pair"))?;
            if !value.is_undefined() {
                let read = self.at(key.clone(), |walk| walk.read(&value))?;
                map.insert(key, read);
            }
        }
        Ok(Json::Object(map))
    }

    /// What the value itself wants to be as JSON: a date is a text.
    fn own_json(&self, object: &Object<'js>) -> Result<Option<Value<'js>>, String> {
        let method = object.get::<_, Value<'js>>(PredefinedAtom::ToJSON);
        let method = method.map_err(|err| self.unreadable(&err))?;
        let Some(method) = method.into_function() else { return Ok(None) };
        method.call((This(object.clone()),)).map(Some).map_err(|err| self.unreadable(&err))
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

    fn refuse(&self, what: &str) -> String {
        if self.path.is_empty() {
            return format!("it is {what}, which cannot leave its script");
        }
        format!("`{}` is {what}, which cannot leave its script", self.path.join("."))
    }

    fn unreadable(&self, err: &Error) -> String {
        self.refuse(&format!("unreadable ({err})"))
    }
}

/// The name of the class of an object.
fn kind_of(object: &Object<'_>) -> Option<String> {
    let class = object.get::<_, Value<'_>>(PredefinedAtom::Constructor).ok()?.into_object()?;
    class.get::<_, Value<'_>>(PredefinedAtom::Name).ok().and_then(|name| {
        String::from_js(object.ctx(), name).ok()
    })
}
