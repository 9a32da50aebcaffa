//! The help of the programs, and what is counted in it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::Command;

/// The three programs.
pub(super) fn programs() -> [Command; 3] {
    [
        stayput_manager::cli::definition(),
        stayput_controller::cli::definition(),
        stayput_kubectl::definition(),
    ]
}

/// `--help` of the program and of each of its commands.
pub(super) fn text(program: &Command) -> String {
    let mut program = program.clone();
    // Completes the usage lines and the options that all commands have.
    program.build();
    let mut text = String::new();
    write_help(&mut program, &[], &mut text);
    text
}

fn write_help(command: &mut Command, above: &[String], text: &mut String) {
    let path = [above, &[command.get_name().to_owned()]].concat();
    let help = command.render_long_help().to_string();
    write!(text, "=== {} --help\n\n", path.join(" ")).expect("a string takes it");
    for line in help.lines() {
        // Without the value that a variable has here.
        let named = line.trim_start().starts_with("[env: ").then(|| line.split_once('=')).flatten();
        let line = named.map_or(line.trim_end().to_owned(), |(name, _)| format!("{name}]"));
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
    for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
        write_help(below, &path, text);
    }
}

/// The program and all of its commands.
fn commands(program: &Command) -> Vec<&Command> {
    let below = program.get_subcommands().filter(|command| command.get_name() != "help");
    std::iter::once(program).chain(below.flat_map(commands)).collect()
}

/// How many commands a program has, and how many options; an option of all commands counts once.
pub(super) fn sizes(program: &Command) -> (usize, usize) {
    let commands = commands(program);
    let options = commands.iter().flat_map(|command| command.get_arguments());
    let options = options.filter(|option| !option.is_positional()).count();
    // The program itself is no command.
    (commands.len() - 1, options)
}

/// The environment variables that options are read from.
pub(super) fn variables() -> BTreeSet<String> {
    let mut variables = BTreeSet::new();
    for program in programs() {
        let options = commands(&program).into_iter().flat_map(Command::get_arguments);
        let names = options.filter_map(|option| option.get_env());
        variables.extend(names.map(|name| name.to_str().expect("UTF-8").to_owned()));
    }
    variables
}
