//! A sorted list whose elements can leave in any order: effects, provisions and dependents by age, listeners by order.
//!
//! Watch for: a removed element leaves an empty place, so that nothing shifts; when half of the places are empty the list
//! closes up. `version` tells a walker by index that places have moved.

/// A list sorted by key. Adding at the end costs O(1), removing O(log n), both amortised.
pub(in crate::cordis) struct Slots<K, T> {
    places: Vec<(K, Option<T>)>,
    live: usize,
    version: u32,
}

impl<K, T> Default for Slots<K, T> {
    fn default() -> Self {
        Self { places: Vec::new(), live: 0, version: 0 }
    }
}

impl<K: Ord + Copy, T> Slots<K, T> {
    /// Number of elements.
    pub(in crate::cordis) fn len(&self) -> usize {
        self.live
    }

    pub(in crate::cordis) fn insert(&mut self, key: K, value: T) {
        self.live += 1;
        if self.places.last().is_none_or(|(last, _)| *last < key) {
            self.places.push((key, Some(value)));
            return;
        }
        let at = self.places.partition_point(|(other, _)| *other < key);
        match &mut self.places[at] {
            (other, empty) if *other == key => *empty = Some(value),
            _ => {
                self.places.insert(at, (key, Some(value)));
                self.version += 1;
            }
        }
    }

    pub(in crate::cordis) fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let at = self.find(key)?;
        self.places[at].1.as_mut()
    }

    pub(in crate::cordis) fn remove(&mut self, key: K) -> Option<T> {
        let at = self.find(key)?;
        let value = self.places[at].1.take()?;
        self.live -= 1;
        self.close_up();
        Some(value)
    }

    /// The newest element and its key.
    pub(in crate::cordis) fn last_mut(&mut self) -> Option<(K, &mut T)> {
        // Invariant: the last place is never empty.
        self.places.last_mut().and_then(|(key, value)| Some((*key, value.as_mut()?)))
    }

    pub(in crate::cordis) fn into_values(self) -> impl Iterator<Item = T> {
        self.places.into_iter().filter_map(|(_, value)| value)
    }

    pub(in crate::cordis) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, value)| value.as_ref())
    }

    /// Changes whenever elements have moved to other places.
    pub(in crate::cordis) fn version(&self) -> u32 {
        self.version
    }

    /// The element at a place; `None` past the end, `Some((key, None))` where one has left.
    pub(in crate::cordis) fn place(&self, at: usize) -> Option<(K, Option<&T>)> {
        self.places.get(at).map(|(key, value)| (*key, value.as_ref()))
    }

    /// The first place whose key is greater than `key`.
    pub(in crate::cordis) fn place_after(&self, key: K) -> usize {
        self.places.partition_point(|(other, _)| *other <= key)
    }

    fn find(&self, key: K) -> Option<usize> {
        match self.places.last() {
            Some((last, _)) if *last == key => Some(self.places.len() - 1),
            _ => self.places.binary_search_by_key(&key, |(other, _)| *other).ok(),
        }
    }

    fn close_up(&mut self) {
        while self.places.last().is_some_and(|(_, value)| value.is_none()) {
            self.places.pop();
        }
        if self.places.len() > 16 && self.live * 2 < self.places.len() {
            self.places.retain(|(_, value)| value.is_some());
            self.version += 1;
        }
        if self.places.capacity() > 64 && self.places.len() * 8 < self.places.capacity() {
            self.places.shrink_to(self.places.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn elements_leave_in_any_order_and_the_rest_keeps_its_order() {
        let mut slots = Slots::default();
        (0..100).for_each(|key| slots.insert(key, key));

        (0..100)
            .filter(|key| key % 3 != 0)
            .for_each(|key| assert_eq!(slots.remove(key), Some(key)));
        slots.insert(50, 50);

        let expected: Vec<_> = (0..100).filter(|key| key % 3 == 0 || *key == 50).collect();
        assert_eq!(slots.iter().copied().collect::<Vec<_>>(), expected);
        assert_eq!(slots.len(), expected.len());
        assert_eq!(slots.remove(1), None);
    }

    #[test]
    fn a_list_that_grew_once_does_not_keep_the_room() {
        let mut slots = Slots::default();
        (0..100_000).for_each(|key| slots.insert(key, ()));
        (0..100_000).rev().for_each(|key| assert!(slots.remove(key).is_some()));

        assert!(slots.places.capacity() <= 64);
        assert!(slots.last_mut().is_none());
    }
}
