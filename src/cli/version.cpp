#include "cli/command.h"
#include "target/capabilities.h"

namespace warploom::cli {

Command version_command() {
  return {"version", "the version and the targets it knows", {}, [](const Session&) -> Result<Answer> {
            const auto targets = target::known_targets();
            return Answer{{{"version", kVersion}, {"targets", targets}},
                          fmt::format("warploom {}\ntargets: {}\n", kVersion, fmt::join(targets, ", "))};
          }};
}

}  // namespace warploom::cli
