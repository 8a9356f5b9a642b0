// Buffers of a launch list under their names: checked once, shared by both executors.
#pragma once

#include <vector>

#include "runtime/executor.h"

namespace warploom::runtime {

// What workspaces are filled with when they are bound: a NaN in every floating-point type, so that a kernel which reads what no
// kernel wrote is seen.
inline constexpr std::uint32_t kWorkspaceFill = 0xffedffedu;

// `buffers` with the workspaces of `list` added, allocated on `device`. Fails with plan-invalid where an input or output is not
// named or too small.
Result<Bindings> complete_bindings(Executor& device, const LaunchList& list, const Bindings& buffers);
// The buffer of each argument of `kernel`. Fails with plan-invalid where one is unknown.
Result<std::vector<Buffer>> buffers_of(const Kernel& kernel, const Bindings& buffers);

Error no_such_set(const std::string& name, int set, int sets);
// ok when the binary's images are those of the list.
Status check_images(const LaunchList& list, const Binary& binary);

}  // namespace warploom::runtime
