#include "cli/command.h"
#include "runtime/compile.h"
#include "verify/evaluator.h"

// Hidden subcommands come first: this program starts itself again as the evaluator and as the
// compiler's process.
int main(int argc, char** argv) {
  int status = 0;
  if (warploom::verify::evaluator_main(argc, argv, &status)) return status;
  if (warploom::runtime::compiler_main(argc, argv, &status)) return status;
  return warploom::cli::run(argc, argv);
}
