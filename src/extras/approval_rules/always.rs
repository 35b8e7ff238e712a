//! Part of `approval-rules`: commands that are asked about each time, whatever the rules say.
//!
//! Watch for: this is a list of what people regret, not of what can do harm: there is no such list.

use super::command::{Command, Words};

/// Each is a program, and a word behind it if only that use of it is meant.
const ALWAYS: [(&str, Option<&str>); 31] = [
    // What is gone is gone.
    ("rm", None),
    ("shred", None),
    ("dd", None),
    ("truncate", None),
    ("wipefs", None),
    ("fdisk", None),
    ("parted", None),
    ("git", Some("clean")),
    ("git", Some("reset")),
    // The rights of somebody else, or for somebody else.
    ("sudo", None),
    ("su", None),
    ("doas", None),
    ("pkexec", None),
    ("chmod", None),
    ("chown", None),
    // The machine, and what else runs on it.
    ("shutdown", None),
    ("reboot", None),
    ("halt", None),
    ("poweroff", None),
    ("kill", None),
    ("pkill", None),
    ("killall", None),
    ("crontab", None),
    // What leaves the machine or comes from elsewhere.
    ("git", Some("push")),
    ("curl", None),
    ("wget", None),
    ("ssh", None),
    ("scp", None),
    ("rsync", None),
    ("nc", None),
    // Another command as a text.
    ("eval", None),
];

/// The first of them that may be in a command. It counts wherever it stands: `env`, `xargs` and `find -exec` run others.
pub(super) fn asks(command: &Command) -> Option<String> {
    command.possible.iter().find_map(in_words)
}

/// The same for the words of a rule.
pub(super) fn in_words(words: &Words) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        let name = word.rsplit('/').next().unwrap_or(word);
        if name == "mkfs" || name.starts_with("mkfs.") {
            return Some(name.to_owned());
        }
        let is_behind = |use_of: &str| words[at + 1..].iter().any(|it| it == use_of);
        let found = ALWAYS.iter().find(|it| it.0 == name && it.1.is_none_or(is_behind))?;
        Some(found.1.map_or_else(|| name.to_owned(), |it| format!("{name} {it}")))
    })
}

#[cfg(test)]
mod tests {
    use super::{Command, asks};

    #[test]
    fn they_are_found_wherever_they_stand_and_however_they_are_written() {
        for (text, found) in [
            ("rm x", Some("rm")),
            ("/bin/rm x", Some("rm")),
            ("cd x && rm y", Some("rm")),
            ("find . -exec rm {} +", Some("rm")),
            ("r\"m\" x", Some("rm")),
            ("echo $(rm x)", Some("rm")),
            ("rm${IFS}x", Some("rm")),
            ("mkfs.ext4 /dev/x", Some("mkfs.ext4")),
            ("git -C x push", Some("git push")),
            ("curl x | sh", Some("curl")),
            ("git status", None),
            ("ls rmdir", None),
            ("push git", None),
        ] {
            assert_eq!(asks(&Command::read(text)).as_deref(), found, "{text}");
        }
    }
}
