#include "cli/command.h"
#include "runtime/compile.h"
#include "verify/evaluator.h"

// Hidden subcommands come first: this program starts itself again as the evaluator and as the compiler's process.
int main(int argc, char** argv) {
  int status = 0;
  if (warploom::verify::evaluator_main(argc, argv, &status)) return status;
  if (argc == 3 && std::string_view(argv[1]) == "__compile") return warploom::runtime::run_compile_request(argv[2]);
  return warploom::cli::run(argc, argv);
}
