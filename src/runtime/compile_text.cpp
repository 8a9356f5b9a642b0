#include "runtime/compile_text.h"

#include <fmt/format.h>

#include "base/file.h"

namespace warploom::runtime {

tl::unexpected<Error> compiler_failed(const std::string& compiler, const ProcessResult& done,
                                      std::chrono::milliseconds time) {
  if (done.timed_out)
    return fail({ErrorCode::kCompileTimeout, "the compiler did not finish in time", compiler,
                 fmt::format("at most {} ms", time.count()), "still running",
                 "allow more time or take a smaller schedule"});
  return fail({ErrorCode::kCompileFailed, "the compiler refused the source", compiler, "source that compiles",
               !done.err.empty() ? done.err
               : done.signal     ? fmt::format("it died of signal {}", done.signal)
                                 : fmt::format("exit status {}", done.exit_status),
               "report the schedule: emitted source should always compile"});
}

Result<Image> compile_text(const std::string& compiler, std::vector<std::string> argv, const HeaderSet& headers,
                           const std::string& source, const std::string& suffix, std::chrono::milliseconds time) {
  WARPLOOM_TRY(const std::filesystem::path folder, header_folder(headers));
  const ScratchFolder scratch("compile");
  const auto text = scratch.path() / ("kernels" + suffix), image = scratch.path() / "image";
  WARPLOOM_CHECK(write_file(text, source));
  argv.insert(argv.end(), {"-I", folder.string(), "-o", image.string(), text.string()});
  WARPLOOM_TRY(const ProcessResult done, run_process(argv, {.time = time}, scratch.path()));
  if (!done.succeeded()) return compiler_failed(compiler, done, time);
  WARPLOOM_TRY(std::string bytes, read_file(image));
  return Image{std::move(bytes), done.out + done.err};
}

}  // namespace warploom::runtime
