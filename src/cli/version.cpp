#include "cli/version.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "target/capabilities.h"

namespace warploom::cli {

void add_version(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("version", "the version and the targets it knows");
  command->callback([&action] {
    action = [](const Session&) -> Result<Answer> {
      const auto targets = target::known_targets();
      return Answer{{{"version", kVersion}, {"targets", targets}},
                    fmt::format("warploom {}\ntargets: {}\n", kVersion, fmt::join(targets, ", "))};
    };
  });
}

}  // namespace warploom::cli
