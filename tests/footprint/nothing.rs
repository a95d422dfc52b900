//! What a program without a store costs.

fn main() {
    println!("{:?}", std::env::args_os().nth(1));
}
