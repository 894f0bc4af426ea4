//! A prepared statement and its parameters in a script's own memory, where compiled code writes them and from where
//! they are sent.

use dbduel_driver::Value as Wire;

/// Types of a parameter; the prelude knows the numbers by the names below.
const NULL: u8 = 0;
/// A whole number that Lua holds as a double.
const NUMBER: u8 = 1;
const DOUBLE: u8 = 2;
/// A 64-bit integer.
const SIGNED: u8 = 3;
const UNSIGNED: u8 = 4;
const TEXT: u8 = 5;

pub(super) const GIVEN: [(u8, &str); 6] = [
    (NULL, "null"),
    (NUMBER, "number"),
    (DOUBLE, "double"),
    (SIGNED, "signed"),
    (UNSIGNED, "unsigned"),
    (TEXT, "text"),
];

/// C declarations of the structures below, for LuaJIT.
pub(super) const DECLARATIONS: &str = "
typedef struct {
   union { double number; int64_t signed_number; uint64_t unsigned_number; };
   char *text;
   uint32_t length, room, max_length;
   uint8_t type, given;
} dbduel_param;
typedef struct {
   uint32_t id, connection_id, placeholders, bound;
   dbduel_param *params[?];
} dbduel_statement;";

/// A parameter.
#[repr(C)]
struct Param {
    number: Number,
    text: *const u8,
    length: u32,
    /// Used by the prelude only: allocated and largest length of a text, and the parameter's type.
    _room: u32,
    _max_length: u32,
    _kind: u8,
    given: u8,
}

#[repr(C)]
union Number {
    double: f64,
    signed: i64,
    unsigned: u64,
}

/// A statement without its parameters: pointers to those follow.
#[repr(C)]
pub(super) struct Statement {
    id: u32,
    _connection_id: u32,
    _placeholders: u32,
    bound: u32,
    params: [*const Param; 0],
}

/// A statement that a script executes. The script waits for the result meanwhile, so its memory is not changed.
#[derive(Clone, Copy)]
pub(super) struct Execution(*const Statement);

impl Execution {
    /// # Safety
    /// The statement is one of the prelude's, and the script waits as long as this is used.
    pub(super) unsafe fn new(statement: *const Statement) -> Self {
        Execution(statement)
    }

    /// The statement's id.
    #[inline]
    pub(super) fn statement(&self) -> usize {
        // SAFETY: the script waits.
        unsafe { (*self.0).id as usize }
    }

    /// The values in the form in which they are sent.
    #[inline]
    pub(super) fn values(&self) -> impl ExactSizeIterator<Item = Wire<'_>> {
        // SAFETY: the script waits. As many pointers follow as are bound, and the prelude keeps what they point to.
        let params = unsafe {
            let first = (&raw const (*self.0).params).cast::<*const Param>();
            std::slice::from_raw_parts(first, (*self.0).bound as usize)
        };
        // SAFETY: likewise.
        params.iter().map(|&param| unsafe { (*param).value() })
    }
}

impl Param {
    #[inline]
    fn value(&self) -> Wire<'_> {
        // SAFETY: every pattern of bits is a number, and a text has so many bytes.
        unsafe {
            match self.given {
                NUMBER => Wire::Signed(self.number.double as i64),
                DOUBLE => Wire::Double(self.number.double),
                SIGNED => Wire::Signed(self.number.signed),
                UNSIGNED => Wire::Unsigned(self.number.unsigned),
                TEXT if self.length > 0 => {
                    Wire::Bytes(std::slice::from_raw_parts(self.text, self.length as usize))
                }
                TEXT => Wire::Bytes(&[]),
                _ => Wire::Null,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use mlua::{Lua, LuaOptions, StdLib};

    use super::*;

    #[test]
    fn lua_finds_everything_where_it_is() {
        // SAFETY: the only code that runs in the state is the one below, which needs the interface to C.
        let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) };
        let text = "local declarations = ...
                    local ffi = require('ffi')
                    ffi.cdef(declarations)
                    local found = { ffi.sizeof('dbduel_param') }
                    for _, name in ipairs { 'number', 'text', 'length', 'given' } do
                        found[#found + 1] = ffi.offsetof('dbduel_param', name)
                    end
                    for _, name in ipairs { 'id', 'bound', 'params' } do
                        found[#found + 1] = ffi.offsetof('dbduel_statement', name)
                    end
                    return found";
        let found: Vec<usize> = lua.load(text).call(DECLARATIONS).unwrap();
        let expected = [
            size_of::<Param>(),
            offset_of!(Param, number),
            offset_of!(Param, text),
            offset_of!(Param, length),
            offset_of!(Param, given),
            offset_of!(Statement, id),
            offset_of!(Statement, bound),
            offset_of!(Statement, params),
        ];
        assert_eq!(found, expected);
    }
}
