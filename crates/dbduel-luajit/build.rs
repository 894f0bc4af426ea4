//! Builds LuaJIT.

/// What LuaJIT's makefile compiles with when nothing is set.
const DEFAULT_CCOPT: &str = "-O2 -fomit-frame-pointer";

/// Lets compiled loops look at hooks.
const CHECK_HOOKS: &str = "-DLUAJIT_ENABLE_CHECKHOOK";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CCOPT");
    let options = std::env::var("CCOPT").unwrap_or_else(|_| DEFAULT_CCOPT.to_owned());
    // SAFETY: no other thread of this process reads or writes its environment. `make` inherits it.
    unsafe { std::env::set_var("CCOPT", format!("{options} {CHECK_HOOKS}")) };
    let built = luajit_src::Build::new().build();
    println!(
        "cargo::rustc-link-search=native={}",
        built.lib_dir().display()
    );
    for library in built.libs() {
        // Whole, because mlua, whose references it satisfies, may come later on the linker's command line.
        println!("cargo::rustc-link-lib=static:+whole-archive,-bundle={library}");
    }
}
