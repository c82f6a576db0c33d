//! The objects in the repository equal what clang compiles from the sources beside them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::machine;

#[test]
fn the_objects_in_the_repository_are_what_clang_makes_of_the_sources() {
    let Some(clang) = output_of("clang", &["-dumpversion"]) else {
        return machine::skipped("no clang");
    };
    if clang.split('.').next() != Some(CLANG) {
        return machine::skipped(&format!("clang {clang} makes other code than {CLANG}"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects");
    fs::create_dir_all(&into).unwrap();
    let built = Command::new(root.join("bpf/build.sh")).arg(&into).status().unwrap();
    assert!(built.success());
    let mut compared = 0;
    for folder in ["bpf/objects", "tests/suite/objects"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let kept = entry.unwrap().path();
            let fresh = into.join(kept.file_name().unwrap());
            let same = fs::read(&kept).unwrap() == fs::read(&fresh).unwrap();
            assert!(same, "{} is stale: run bpf/build.sh", kept.display());
            compared += 1;
        }
    }
    assert_eq!(compared, 12, "nine controllers, a receiver that cheats, and two of the tests");
}

#[test]
fn an_object_names_no_place_on_the_machine_that_made_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in fs::read_dir(root.join("bpf/objects")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for place in ["/home/", "/root/", "/tmp/", env!("CARGO_MANIFEST_DIR")] {
            assert!(!text.contains(place), "{}: {place}", path.display());
        }
    }
}

fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Major version of the clang that compiled the objects in the repository (Debian 12).
const CLANG: &str = "14";
