//! Links LuaJIT into programs that use mlua, built so that an endless script can be ended although it is compiled
//! (`LUAJIT_ENABLE_CHECKHOOK`, in this crate's build script). mlua's own build of LuaJIT has no such option, and one that is
//! set outside of a package is missing where the package is installed from a registry.
//!
//! It has no items: `use dbduel_luajit as _;` links it.

// Without it mlua's feature `external` would be asked for and mlua not used.
use mlua_sys as _;
