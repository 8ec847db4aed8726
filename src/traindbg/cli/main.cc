#include "traindbg/cli/program.h"

int main(int argc, char** argv) { return traindbg::cli::run_program(argc, argv); }
