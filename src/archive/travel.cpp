#include "archive/travel.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "archive/record.h"
#include "base/error.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/hash.h"

namespace warploom::archive {
using nlohmann::json;

namespace fs = std::filesystem;

namespace {
constexpr const char* kFormat = "warploom-archive";
constexpr int kFormatVersion = 1;
constexpr size_t kMostBytes = size_t{1} << 30;  // unpacked
constexpr int kDeepest = 64;                    // levels of a record, as a reader may recurse
constexpr size_t kKeyDigits = 32;
constexpr double kMostUs = 1e15;  // thirty years

// Lines, and what is said of them at the end.
class Writer {
 public:
  void add(const char* kind, json record) {
    append(sealed_text({{"kind", kind}, {"record", std::move(record)}}));
    ++records_;
  }

  void append(const std::string& line) { text_ += line + "\n"; }

  std::string finished() {
    const json end = {{"kind", "end"}, {"records", records_}, {"hash", hash_hex(text_)}};
    append(end.dump());
    return gzipped(text_);
  }

 private:
  std::string text_;
  size_t records_ = 0;
};

class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path) {}

  Status read() {
    WARPLOOM_TRY(const std::string bytes, read_file(path_));
    WARPLOOM_CHECK(look_at(bytes));
    const auto text = gunzipped(bytes, kMostBytes);
    if (!text) return damaged("a file that is cut off, or is more than 1 GiB unpacked");
    WARPLOOM_CHECK(take_head(*text));
    WARPLOOM_TRY(const std::string_view body, body_of(*text));
    size_t begin = body.find('\n') + 1;
    while (begin < body.size()) {
      const size_t end = body.find('\n', begin);
      ++line_;
      WARPLOOM_CHECK(take_line(body.substr(begin, end - begin)));
      begin = end + 1;
    }
    return ok();
  }

  std::vector<Foreign<json>> records;
  Travelled count;

 private:
  tl::unexpected<Error> damaged(const std::string& found) const {
    const std::string place =
        line_ > 1 ? fmt::format("{}: line {}", path_.string(), line_) : path_.string();
    Error error{ErrorCode::kArchiveDamaged, "the file cannot be taken into an archive", place};
    error.expected = "a whole file, as warploom archive --export writes it";
    error.found = found;
    error.remedy = "export it again; nothing of it was taken";
    return fail(error);
  }

  tl::unexpected<Error> another_kind() const {
    return fail({ErrorCode::kArchiveForeign, "the file is none that an archive was exported to",
                 path_.string(), "what warploom archive --export writes", "a file of another kind",
                 "name another file"});
  }

  Status look_at(const std::string& bytes) const {
    const bool is_gzip = bytes.starts_with("\x1f\x8b");
    return is_gzip || bytes.empty() ? ok() : Status(another_kind());
  }

  // A line's object; null where it is none, or has more levels than a reader should follow.
  static json parsed(std::string_view line) {
    bool is_deep = false;
    const auto look = [&](int depth, json::parse_event_t /*event*/, json& /*value*/) {
      is_deep = is_deep || depth > kDeepest;
      return !is_deep;
    };
    constexpr bool kThrows = false;
    const json out = json::parse(line, look, kThrows);
    return is_deep || !out.is_object() ? json() : out;
  }

  // What lies before the last line, which is held against it.
  Result<std::string_view> body_of(std::string_view text) const {
    if (text.back() != '\n') return damaged("a last line that is cut off");
    text.remove_suffix(1);
    const size_t before = text.rfind('\n');
    if (before == text.npos) return damaged("no end");
    const json end = parsed(text.substr(before + 1));
    const std::string_view body = text.substr(0, before + 1);
    if (end.is_null() || end.value("kind", json()) != "end") return damaged("no end");
    if (end.value("hash", json()) != hash_hex(body))
      return damaged("records that have changed since they were written");
    return body;
  }

  Status take_line(std::string_view line) {
    if (is_changed(line)) return damaged("a record that has changed since it was written");
    const json given = parsed(line);
    if (given.is_null()) return damaged("a line that is no JSON object, or is nested too deep");
    try {
      return take_record(given.at("kind").get<std::string>(), given.at("record"));
    } catch (const json::exception& error) {
      return damaged(error.what());
    }
  }

  Status take_head(std::string_view text) const {
    const json head = parsed(text.substr(0, text.find('\n')));
    if (head.is_null() || head.value("format", json()) != kFormat) return another_kind();
    const json version = head.value("version", json());
    if (version == kFormatVersion) return ok();
    return fail({ErrorCode::kArchiveVersion, "the file was written by another version",
                 path_.string(), fmt::format("version {}", kFormatVersion),
                 "version " + version.dump(), "export it by a program of this version"});
  }

  Status take_record(const std::string& kind, const json& record) {
    if (kind == "problem") return take_problem(record);
    if (kind == "candidate") return take_candidate(record);
    if (kind == "run") return take_run(record);
    return damaged("a record of an unknown kind: " + kind);
  }

  // `name` tells a problem's records of one kind apart.
  void keep(const char* kind, const std::string& problem, const std::string& name, json record) {
    const std::string from = path_.filename().string();
    json kept = {{"kind", kind}, {"problem", problem}, {"name", name}};
    kept["record"] = std::move(record);
    records.push_back({from, std::move(kept)});
  }

  Status take_problem(const json& record) {
    const auto problem = record.get<Problem>();
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    if (problem.key.size() != kKeyDigits || !std::ranges::all_of(problem.key, is_digit))
      return damaged("a problem whose key is not 32 hexadecimal digits");
    if (problem.track.empty() || problem.target.empty() || problem.device.empty())
      return damaged("a problem without a track, target or device");
    if (!keys_.insert(problem.key).second) return damaged("a problem that is there twice");
    keep("problem", problem.key, "", problem);
    ++count.problems;
    return ok();
  }

  Status take_candidate(const json& record) {
    const auto candidate = record.get<Candidate>();
    if (!keys_.contains(candidate.problem)) return damaged("a candidate of no problem of the file");
    if (candidate.schedule.empty() || !candidate.fields.is_object())
      return damaged("a candidate without a schedule");
    if (!record.contains("stage") || json(candidate.stage) != record["stage"])
      return damaged("a candidate of an unknown stage");
    const bool is_refused = candidate.stage == Stage::refused;
    const double us = candidate.median_us.value_or(0);
    const bool is_timed = us > 0 && us < kMostUs;
    if (!is_refused && !is_timed) return damaged("a candidate that has neither time nor refusal");
    keep("candidate", candidate.problem, candidate.schedule, candidate);
    ++count.candidates;
    return ok();
  }

  Status take_run(const json& record) {
    const auto run = record.get<Run>();
    if (!keys_.contains(run.problem)) return damaged("a run of no problem of the file");
    const bool is_sound = std::isfinite(run.seconds) && run.seconds >= 0 && run.candidates >= 0;
    if (!is_sound) return damaged("a run that took less than no time, or tried less than nothing");
    keep("run", run.problem, hash_hex(record.dump()), run);
    ++count.runs;
    return ok();
  }

  const fs::path path_;
  size_t line_ = 1;  // the head
  std::set<std::string> keys_;
};
}  // namespace

Result<Travelled> export_archive(Archive& from, const fs::path& path, const std::string& key) {
  std::error_code ignored;
  if (fs::exists(path, ignored))
    return fail({ErrorCode::kFileUnwritable, "the file is there already", path.string(),
                 "a new file", "a file", "name another, or move it away"});
  WARPLOOM_TRY(const std::vector<Problem> problems, from.problems());
  Writer writer;
  Travelled out;
  writer.append(json({{"format", kFormat}, {"version", kFormatVersion}}).dump());
  for (const Problem& problem : problems) {
    if (!problem.key.starts_with(key)) continue;
    ++out.problems;
    writer.add("problem", problem);
    WARPLOOM_TRY(const std::vector<Candidate> candidates, from.candidates(problem.key));
    for (const Candidate& one : candidates)
      if (one.stage == Stage::refused || one.median_us) writer.add("candidate", one);
    WARPLOOM_TRY(const std::vector<Run> runs, from.runs(problem.key));
    for (const Run& one : runs)
      writer.add("run", one);
    out.candidates += candidates.size();
    out.runs += runs.size();
  }
  WARPLOOM_CHECK(write_file(path, writer.finished()));
  return out;
}

Result<Travelled> import_archive(Archive& into, const fs::path& path) {
  Reader reader(path);
  WARPLOOM_CHECK(reader.read());
  WARPLOOM_CHECK(into.add_foreign(reader.records));
  return reader.count;
}
}  // namespace warploom::archive
