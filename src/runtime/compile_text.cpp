#include "runtime/compile_text.h"
#include "base/file.h"
#include "base/hash.h"
namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

HeaderSet collected(std::string_view device) {
  HeaderSet set;
  std::string all;
  for (const EmbeddedFile& file : device_headers()) {
    const fs::path path = file.path, name = path.filename();
    if (path.parent_path() != device && path.parent_path() != "common") continue;
    set.files.push_back({name.string(), file.text});
    all += name.string() + '\0' + file.text + '\0';
  }
  set.key = hash_hex(all);
  return set;
}

// The set on disk, flat in one folder of the cache; written once.
Result<fs::path> header_folder(const HeaderSet& set) {
  const fs::path folder = cache_folder() / "headers" / set.key;
  const fs::path complete = folder / ".complete";
  std::error_code error;
  if (fs::exists(complete, error)) return folder;
  WARPLOOM_CHECK(make_folders(folder));
  for (const EmbeddedFile& file : set.files) WARPLOOM_CHECK(write_file(folder / file.path, file.text));
  WARPLOOM_CHECK(write_file(complete, ""));
  return folder;
}

tl::unexpected<Error> compiler_failed(const std::string& compiler, const ProcessResult& done, std::chrono::milliseconds time) {
  if (done.timed_out)
    return fail({ErrorCode::kCompileTimeout, "the compiler did not finish in time", compiler,
                 fmt::format("at most {} ms", time.count()), "still running", "allow more time or take a smaller schedule"});
  return fail({ErrorCode::kCompileFailed, "the compiler refused the source", compiler, "source that compiles",
               !done.err.empty() ? done.err
               : done.signal     ? fmt::format("it died of signal {}", done.signal)
                                 : fmt::format("exit status {}", done.exit_status),
               "report the schedule: emitted source should always compile"});
}
}  // namespace
const HeaderSet& headers_of(const std::string& device) {
  static const std::map<std::string, HeaderSet> sets = {
      {"ptx", collected("ptx")}, {"cpu", collected("cpu")}, {"emulated", collected("emulated")}};
  return sets.at(device);
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
