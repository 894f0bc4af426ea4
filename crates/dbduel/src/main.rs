//! The program; its code is in the library of the same name.

fn main() -> dbduel::Exit {
    dbduel::main()
}
