//! The program; what it does is in the library of the same name.

fn main() -> dbduel::Exit {
    dbduel::main()
}
