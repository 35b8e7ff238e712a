//! Stirs that are no saves, and saves that stir nothing.

use std::fs::{self, FileTimes};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use super::{list, stage};
use crate::support::{kernel, pass};

#[test]
fn k_206_a_file_that_nobody_named_is_nobodys_business() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.broken("./b.ts", "no");
        stage.start(list(&["a", "./b.ts"])).await.unwrap();
        let loads = stage.loads();
        stage.told();

        stage.write("notes.txt", "unrelated");
        bell.ring();
        pass(3000).await;

        assert_eq!(stage.loads(), loads);
        assert_eq!(stage.told(), [""; 0]);
    });
}

#[test]
fn k_206_that_a_file_was_read_is_no_save_and_that_its_permissions_changed_is_one() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a"]);
        stage.broken("./b.ts", "no");
        stage.start(list(&["a", "./b.ts"])).await.unwrap();
        let file = fs::File::options().write(true).open(stage.file("cordis.yml")).unwrap();
        let loads = stage.loads();

        for second in 1..=3 {
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            file.set_times(FileTimes::new().set_accessed(then)).unwrap();
            bell.ring();
            pass(3000).await;
        }
        let after_reading = stage.loads();
        file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
        bell.ring();
        pass(3000).await;

        assert_eq!([after_reading, stage.loads()], [loads, loads + 1]);
        stage.forget();
    });
}

#[test]
fn where_the_system_cannot_watch_the_files_are_read_every_second() {
    kernel(async |test| {
        let (stage, bell) = stage(&test, &["a", "b"]);
        bell.0.broken.set(true);
        stage.start(list(&["a"])).await.unwrap();
        pass(10).await;

        stage.write("cordis.yml", list(&["b"]));
        pass(3000).await;

        let line = "files cannot be watched (no watches left), so they are read every second";
        assert_eq!(stage.told(), [line, "applied cordis.yml"]);
        assert_eq!(stage.took_place(), ["a start", "a stop", "b start"]);
    });
}
