//! The header is the one the code makes; a C driver compiles, runs, and is clean under valgrind.
//!
//! `UPDATE_DOCS=1 cargo test -p udma-sim-c` rewrites the header.

use snapbox::IntoData;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The header, made from the code.
fn header() -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        include_guard: Some("UDMA_SIM_H".to_string()),
        no_includes: true,
        sys_includes: vec!["stdint.h".to_string()],
        cpp_compat: true,
        documentation_style: cbindgen::DocumentationStyle::C99,
        header: Some(
            "// Simulator of UDMA engines, C interface. Generated from c-library/src: do not edit."
                .into(),
        ),
        ..cbindgen::Config::default()
    };
    config.enumeration.rename_variants = cbindgen::RenameRule::QualifiedScreamingSnakeCase;
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src("src/lib.rs")
        .with_src("src/status.rs")
        .generate()
        .unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_header_is_what_the_code_makes() {
    let (path, real) = (Path::new(ROOT).join("include/udma_sim.h"), header());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, real).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap();
    snapbox::assert_data_eq!(kept.raw(), real.raw());
}

/// Builds the shared library, which no test is linked with, as this test was built; returns its folder.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let release = folder.file_name().is_some_and(|name| name == "release");
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--offline",
            "--package",
            "udma-sim-c",
            "--target-dir",
        ])
        .arg(folder.parent().unwrap())
        .args(release.then_some("--release"))
        .current_dir(ROOT)
        .output()
        .unwrap();
    succeed("building the library", &output);
    folder.to_path_buf()
}

fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{command:?}: {error}"),
    }
}

fn succeed(what: &str, output: &Output) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{what}: {}\n{out}{err}",
        output.status
    );
}

/// Compiles the driver; `None`, and says so, if there is no C compiler.
fn compiled(folder: &Path) -> Option<PathBuf> {
    let (driver, library) = (folder.join("driver"), library_folder());
    let output = run(Command::new("cc")
        .args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Iinclude",
        ])
        .arg("examples/c/driver.c")
        .current_dir(ROOT)
        .arg("-L")
        .arg(&library)
        .arg("-ludma_sim")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-o")
        .arg(&driver));
    let Some(output) = output else {
        println!("NOT TESTED: there is no C compiler `cc` here, the C driver was not compiled");
        return None;
    };
    succeed("compiling the driver", &output);
    Some(driver)
}

#[test]
fn a_c_driver_copies_through_registers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(driver) = compiled(folder.path()) else {
        return;
    };
    for config in ["sunda", "cayman", "mariana"] {
        let output = Command::new(&driver).arg(config).output().unwrap();
        succeed(config, &output);
        let text = String::from_utf8(output.stdout).unwrap();
        // Five rounds of three copies of ten lengths.
        let said = format!("{config}: {} bytes copied and checked in ", 15 * 1_000_837);
        assert!(text.starts_with(&said), "{text}");
    }
}

/// The same under valgrind: no access outside what is allocated, nothing leaked. On V2: valgrind has
/// no room in its address space for the 96 GiB of HBM of the others.
#[test]
fn the_c_driver_is_clean_under_valgrind() {
    let folder = tempfile::tempdir().unwrap();
    let Some(driver) = compiled(folder.path()) else {
        return;
    };
    let output = run(Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
        .args(["--errors-for-leak-kinds=definite"])
        .arg(driver)
        .arg("sunda"));
    match output {
        Some(output) => succeed("valgrind", &output),
        None => println!("NOT TESTED: there is no valgrind here"),
    }
}
