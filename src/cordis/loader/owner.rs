//! Whose file the list is. A list of plugins is code: whoever can write it decides what runs here.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use nix::unistd::{getegid, geteuid};

/// Write permission of the group, and of everybody else.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;

/// Who reads, and who may have written.
#[derive(Clone, Copy)]
struct Parties {
    me: u32,
    my_group: u32,
    owner: u32,
    group: u32,
    mode: u32,
}

/// Why the list is not to be trusted, with the command that mends it. A link counts too: it could be turned.
pub(super) fn objection(path: &Path, file: &Metadata) -> io::Result<Option<String>> {
    let (me, my_group) = (geteuid().as_raw(), getegid().as_raw());
    let of =
        |it: &Metadata| Parties { me, my_group, owner: it.uid(), group: it.gid(), mode: it.mode() };
    let link = fs::symlink_metadata(path)?;
    // Everybody may write a link, says its mode, and means nothing by it.
    let link = Parties { mode: 0, ..of(&link) };
    let problem = link.problem(path).or_else(|| of(file).problem(path));
    Ok(problem)
}

impl Parties {
    fn problem(self, path: &Path) -> Option<String> {
        let Self { me, my_group, owner, group, mode } = self;
        let path = path.display();
        if owner != me && owner != 0 {
            let sudo = if me == 0 { "" } else { "sudo " };
            let mend = format!("read it, then: {sudo}chown -h {me} {path}");
            return Some(format!("it is code, and belongs to another user ({owner}); {mend}"));
        }
        let by_others =
            mode & OTHERS != 0 || (mode & GROUP != 0 && group != my_group && group != 0);
        let mend = format!("read it, then: chmod go-w {path}");
        by_others.then(|| format!("it is code, and other users can write it; {mend}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Parties, Path};

    #[test]
    fn what_is_mine_or_roots_is_trusted_unless_others_can_write_it() {
        let mine = Parties { me: 1000, my_group: 1000, owner: 1000, group: 1000, mode: 0o100_644 };
        let others = [
            (Parties { owner: 1001, ..mine }, "another user (1001)"),
            (
                Parties { me: 0, my_group: 0, ..mine },
                "another user (1000); read it, then: chown -h 0 f",
            ),
            (Parties { mode: 0o100_666, ..mine }, "chmod go-w f"),
            (Parties { mode: 0o100_646, ..mine }, "chmod go-w f"),
            (Parties { mode: 0o100_664, group: 50, ..mine }, "chmod go-w f"),
            (Parties { mode: 0o100_666, owner: 0, group: 0, ..mine }, "chmod go-w f"),
        ];
        let trusted = [
            mine,
            Parties { mode: 0o100_600, ..mine },
            // The group that a user has alone.
            Parties { mode: 0o100_664, ..mine },
            Parties { owner: 0, group: 0, ..mine },
            Parties { owner: 0, group: 0, mode: 0o100_664, ..mine },
        ];

        let problem = |it: Parties| it.problem(Path::new("f"));

        assert_eq!(trusted.map(problem), [const { None }; 5]);
        for (parties, part) in others {
            let problem = problem(parties).unwrap();
            assert!(problem.contains(part), "{problem}");
        }
    }
}
