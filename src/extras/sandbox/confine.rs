//! Part of `sandbox`: has the kernel hold this process, and all that it becomes and starts, to its limits.
//!
//! Watch for: all of it is demanded, never tried as well as it goes. What a kernel cannot do is said with what would help.

#[cfg(target_os = "linux")]
use std::path::Path;

#[cfg(target_os = "linux")]
use landlock::{
    ABI, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus,
};

use super::launch::Limits;

/// Commands write there: what is no file, and memory that is shared.
#[cfg(target_os = "linux")]
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Linux 6.2: before, a file could be emptied wherever it is.
#[cfg(target_os = "linux")]
const FILES: ABI = ABI::V3;

// Omitted: rights to read and to run, signals and sockets of other processes, and ioctl of devices. What is held is what a
// command does to files; the README says what the kernel does not hold.
#[cfg(target_os = "linux")]
pub(super) fn confine(limits: &Limits) -> Result<(), String> {
    let demanded = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let mut rules = demanded.handle_access(AccessFs::from_write(FILES)).map_err(|_| {
        "this kernel has no Landlock that covers all writing (Linux 6.2 or newer, with `landlock` among its security modules)"
    })?;
    if !limits.has_network {
        let tcp = AccessNet::BindTcp | AccessNet::ConnectTcp;
        rules = rules.handle_access(tcp).map_err(|_| {
            "this kernel cannot keep commands off the network (that takes Linux 6.7); set `network: on`"
        })?;
        let udp = AccessNet::BindUdp | AccessNet::ConnectSendUdp;
        let wished = rules.set_compatibility(CompatLevel::BestEffort).handle_access(udp);
        rules = wished.map_err(|err| cannot(&err))?.set_compatibility(CompatLevel::HardRequirement);
    }
    let mut rules = rules.create().map_err(|err| cannot(&err))?;
    for path in &limits.writable {
        rules = allow(rules, path)?;
    }
    for path in DEVICES.iter().map(Path::new).filter(|it| it.exists()) {
        rules = allow(rules, path)?;
    }
    match rules.restrict_self() {
        Ok(RestrictionStatus { ruleset: RulesetStatus::NotEnforced, .. }) => {
            Err("this kernel has no Landlock".into())
        }
        Ok(_) => Ok(()),
        Err(err) => Err(cannot(&err)),
    }
}

#[cfg(target_os = "linux")]
fn allow(rules: RulesetCreated, path: &Path) -> Result<RulesetCreated, String> {
    let all = AccessFs::from_write(FILES);
    let access: BitFlags<AccessFs> =
        if path.is_dir() { all } else { all & AccessFs::from_file(FILES) };
    let opened = PathFd::new(path).map_err(|err| format!("{}: {err}", path.display()))?;
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|err| cannot(&err))
}

#[cfg(target_os = "linux")]
fn cannot(err: &RulesetError) -> String {
    format!("Landlock failed: {err}")
}

/// Elsewhere there is no Landlock.
#[cfg(not(target_os = "linux"))]
pub(super) fn confine(_limits: &Limits) -> Result<(), String> {
    Err("only Linux has what it takes (Landlock)".into())
}
