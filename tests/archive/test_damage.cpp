// What disks do: bits that change, ends that are missing, writes that were never synced when the
// power went.
//
//   WARPLOOM_DAMAGES=10000 WARPLOOM_DAMAGES_OUT=FILE build/release/test_archive
//   --gtest_filter='Damage.*' WARPLOOM_POWER_CUTS=500 WARPLOOM_POWER_CUTS_OUT=FILE
//   build/release/test_archive --gtest_filter='PowerLoss.*'
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"

namespace warploom::archive {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

int times(const char* variable, int sample) {
  const char* const wanted = std::getenv(variable);
  return wanted ? std::atoi(wanted) : sample;
}

void keep_figures(const char* variable, const json& figures) {
  if (const char* const out = std::getenv(variable)) {
    ASSERT_TRUE(write_file(out, figures.dump(1) + "\n"));
  }
}

const Problem kProblem = {"p", "mm", "fp32", "cpu", "a CPU", "text"};

// One record of a search that gets better with every eighth candidate, as large as a real one.
Candidate candidate(int number) {
  Candidate out;
  out.problem = "p";
  out.schedule = fmt::format("fake n={}", number);
  out.fields = {{"family", "fake"}, {"n", number}};
  out.family = "fake";
  out.stage = number % 3 ? Stage::screened : Stage::refused;
  const int eighth = number / 8;
  out.median_us = out.stage == Stage::refused ? 0 : 1e4 / (1 + eighth) + number % 8;
  out.environment = std::string(static_cast<size_t>(500 + number % 7 * 400),
                                static_cast<char>('a' + number % 26));
  return out;
}

// Everything that an archive of kProblem says.
Result<std::vector<json>> all_of(Archive& archive) {
  std::vector<json> out;
  WARPLOOM_TRY(const auto problems, archive.problems());
  WARPLOOM_TRY(const auto candidates, archive.candidates("p"));
  WARPLOOM_TRY(const auto runs, archive.runs("p"));
  for (const auto& one : problems)
    out.push_back(one);
  for (const auto& one : candidates)
    out.push_back(one);
  for (const auto& one : runs)
    out.push_back(one);
  return out;
}

// A file as a disk may give it back: cut short, or with some bits flipped.
struct Damaged {
  std::string bytes;
  bool cut = false;
};

Damaged damage(const std::string& whole, bool cut, Random& random) {
  Damaged out{whole, cut};
  if (cut) {
    out.bytes.resize(random.below(whole.size()));
    return out;
  }
  const uint64_t flips = 1 + random.below(4);
  for (uint64_t i = 0; i < flips; ++i) {
    const uint64_t place = random.below(whole.size());
    out.bytes[place] ^= static_cast<char>(1 << random.below(8));
  }
  return out;
}

// What becomes of the damaged file at `path`, of which `written` was whole.
std::string outcome_of(const fs::path& path, const Damaged& damaged,
                       const std::vector<json>& written) {
  auto archive = Archive::open(path);
  if (!archive) {
    const std::string code(code_text(archive.error().code));
    const bool moved = code == "archive-damaged";
    EXPECT_EQ(fs::exists(path), !moved) << describe(archive.error());
    if (moved) {
      EXPECT_EQ(*read_file(path.string() + ".damaged-1"), damaged.bytes);
    }
    return code;
  }
  const auto read = all_of(*archive);
  if (!read) return std::string(code_text(read.error().code)) + " when read";
  if (*read == written) return "read whole";
  const bool empty = damaged.cut && damaged.bytes.empty();
  return empty ? "begun anew" : "read other than written";
}

TEST(Damage, IsDetectedAndMovedAsideOrChangesNothingThatIsRead) {
  const ScratchFolder folder("damage");
  const fs::path whole = folder.path() / "whole.sqlite";
  std::vector<json> written;
  {
    auto archive = Archive::open(whole);
    ASSERT_TRUE(archive);
    ASSERT_TRUE(archive->add_problem(kProblem));
    for (int i = 0; i < 60; ++i)
      ASSERT_TRUE(archive->record(candidate(i)));
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(archive->begin_run({"p", 7, "plain", 2.5, "gcc"}));
    written = *all_of(*archive);
  }
  const std::string bytes = *read_file(whole);
  Random random(1, "damage");
  std::map<std::string, int> outcomes;
  const int most = times("WARPLOOM_DAMAGES", 300);
  for (int i = 0; i < most; ++i) {
    const fs::path path = folder.path() / "archive.sqlite";
    const Damaged damaged = damage(bytes, i % 4 == 0, random);
    std::ofstream file(path, std::ios::binary);
    file << damaged.bytes;
    file.close();
    const std::string outcome = outcome_of(path, damaged, written);
    ++outcomes[outcome];
    if (outcome.starts_with("read other") || outcome.ends_with("when read"))
      ADD_FAILURE() << "damage " << i << ": " << outcome;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (entry.path() != whole) fs::remove(entry.path());
  }
  const json figures = {{"damages", most}, {"outcomes", outcomes}};
  RecordProperty("figures", figures.dump());
  keep_figures("WARPLOOM_DAMAGES_OUT", figures);
}

// A file system of SQLite's that remembers what is not synced yet, and whose power can be cut: from
// then on everything fails, and of the writes since the last sync of a file each is on the disk or
// is not, or the first half of it is.
class Disk {
 public:
  static Disk& get() {
    static Disk disk;
    return disk;
  }

  // Where archives are opened from here on, and from where they are no more.
  void plug_in() { sqlite3_vfs_register(&vfs_, 1); }

  void unplug() { sqlite3_vfs_unregister(&vfs_); }

  // After so many more operations, the power goes.
  void arm(int64_t operations) {
    left_ = operations;
    done_ = 0;
    unsynced_.clear();
  }

  int64_t operations() const { return done_; }

  // What the disk holds when the power is back: from the newest write back, those that did not
  // arrive are undone.
  int settle(Random& random) {
    left_ = -1;
    int undone = 0;
    for (auto& [path, writes] : unsynced_) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      if (!file) continue;
      for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
        const uint64_t fate = random.below(4);
        if (fate < 2) continue;
        ++undone;
        const size_t kept = fate == 2 ? write->before.size() / 2 : 0;
        file.seekp(static_cast<std::streamoff>(write->offset + static_cast<int64_t>(kept)));
        file.write(write->before.data() + kept,
                   static_cast<std::streamsize>(write->before.size() - kept));
      }
    }
    unsynced_.clear();
    return undone;
  }

 private:
  // What a write replaced: zeros beyond the old end.
  struct Write {
    int64_t offset;
    std::string before;
  };

  struct File {
    sqlite3_file base;
    char path[512];

    sqlite3_file* under() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };

  Disk() : under_(sqlite3_vfs_find(nullptr)), vfs_(*under_) {
    vfs_.zName = "disk";
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + under_->szOsFile;
    vfs_.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* raw, int flags, int* out) {
      auto* file = reinterpret_cast<File*>(raw);
      *file = {};
      if (!get().powered()) return SQLITE_IOERR;
      if (name) std::snprintf(file->path, sizeof file->path, "%s", name);
      const int code = get().under_->xOpen(get().under_, name, file->under(), flags, out);
      if (code == SQLITE_OK) file->base.pMethods = &get().methods_;
      return code;
    };
    vfs_.xDelete = [](sqlite3_vfs*, const char* name, int sync) {
      if (!get().powered()) return SQLITE_IOERR;
      return get().under_->xDelete(get().under_, name, sync);
    };
    methods_.iVersion = 2;
    methods_.xClose = [](sqlite3_file* f) { return of(f)->pMethods->xClose(of(f)); };
    methods_.xRead = [](sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
      return of(f)->pMethods->xRead(of(f), to, size, at);
    };
    methods_.xWrite = [](sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
      if (!get().powered()) return SQLITE_IOERR_WRITE;
      get().remember(f, size, at);
      return of(f)->pMethods->xWrite(of(f), from, size, at);
    };
    methods_.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
      if (!get().powered()) return SQLITE_IOERR_TRUNCATE;
      return of(f)->pMethods->xTruncate(of(f), size);
    };
    methods_.xSync = [](sqlite3_file* f, int) {
      if (!get().powered()) return SQLITE_IOERR_FSYNC;
      get().unsynced_.erase(reinterpret_cast<File*>(f)->path);
      return SQLITE_OK;
    };
    methods_.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
      return of(f)->pMethods->xFileSize(of(f), size);
    };
    methods_.xLock = [](sqlite3_file* f, int kind) { return of(f)->pMethods->xLock(of(f), kind); };
    methods_.xUnlock = [](sqlite3_file* f, int kind) {
      return of(f)->pMethods->xUnlock(of(f), kind);
    };
    methods_.xCheckReservedLock = [](sqlite3_file* f, int* held) {
      return of(f)->pMethods->xCheckReservedLock(of(f), held);
    };
    methods_.xFileControl = [](sqlite3_file* f, int what, void* with) {
      return of(f)->pMethods->xFileControl(of(f), what, with);
    };
    methods_.xSectorSize = [](sqlite3_file*) { return 4096; };
    methods_.xDeviceCharacteristics = [](sqlite3_file*) { return 0; };
    methods_.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
      return of(f)->pMethods->xShmMap(of(f), page, size, extend, out);
    };
    methods_.xShmLock = [](sqlite3_file* f, int at, int n, int flags) {
      return of(f)->pMethods->xShmLock(of(f), at, n, flags);
    };
    methods_.xShmBarrier = [](sqlite3_file* f) { of(f)->pMethods->xShmBarrier(of(f)); };
    methods_.xShmUnmap = [](sqlite3_file* f, int removes) {
      return of(f)->pMethods->xShmUnmap(of(f), removes);
    };
  }

  static sqlite3_file* of(sqlite3_file* file) { return reinterpret_cast<File*>(file)->under(); }

  bool powered() {
    ++done_;
    return left_ < 0 || done_ <= left_;
  }

  void remember(sqlite3_file* file, int size, int64_t at) {
    std::string before(static_cast<size_t>(size), '\0');
    of(file)->pMethods->xRead(of(file), before.data(), size, at);
    unsynced_[reinterpret_cast<File*>(file)->path].push_back({at, std::move(before)});
  }

  sqlite3_vfs* under_;
  sqlite3_vfs vfs_;
  sqlite3_io_methods methods_{};
  int64_t left_ = -1;
  int64_t done_ = 0;
  std::map<std::string, std::vector<Write>> unsynced_;
};

TEST(PowerLoss, KeepsEveryAcknowledgedRecord) {
  Disk& disk = Disk::get();
  disk.plug_in();
  Random random(2, "power");
  constexpr int kRecords = 450;  // more than the log holds before it is written back
  // One search until the power goes: how many records were acknowledged, -1: not even the problem.
  const auto search = [](const fs::path& path) {
    int acknowledged = -1;
    auto archive = Archive::open(path);
    if (!archive || !archive->add_problem(kProblem)) return acknowledged;
    for (acknowledged = 0; acknowledged < kRecords; ++acknowledged)
      if (!archive->record(candidate(acknowledged))) break;
    return acknowledged;
  };
  int64_t operations = 0;
  {
    const ScratchFolder folder("power");
    disk.arm(int64_t{1} << 40);
    ASSERT_EQ(search(folder.path() / "archive.sqlite"), kRecords);
    operations = disk.operations();
  }
  const int cuts = times("WARPLOOM_POWER_CUTS", 60);
  int undone = 0;
  int lost = 0;
  int worse = 0;
  int unreadable = 0;
  int64_t acknowledged_in_all = 0;
  for (int i = 0; i < cuts; ++i) {
    const ScratchFolder folder("power");
    const fs::path path = folder.path() / "archive.sqlite";
    // Every third cut within the first records, where files and tables are made.
    disk.arm(static_cast<int64_t>(random.below(i % 3 ? static_cast<uint64_t>(operations) : 120)));
    const int acknowledged = search(path);
    undone += disk.settle(random);
    fs::remove(path.string() + "-shm");  // memory, not disk
    acknowledged_in_all += std::max(acknowledged, 0);
    auto archive = Archive::open(path);
    const auto kept =
        archive ? archive->candidates("p") : Result<std::vector<Candidate>>(fail(archive.error()));
    if (!kept) {
      ++unreadable;
      ADD_FAILURE() << "cut " << i << " after " << acknowledged << ": " << describe(kept.error());
      continue;
    }
    double best_us = HUGE_VAL;
    for (int n = 0; n < acknowledged; ++n) {
      const Candidate wanted = candidate(n);
      lost += static_cast<size_t>(n) >= kept->size() ||
              json((*kept)[static_cast<size_t>(n)]) != json(wanted);
      if (wanted.median_us > 0) best_us = std::min(best_us, *wanted.median_us);
    }
    const auto best = archive->best("p");
    worse += best_us < HUGE_VAL && (!best || !best->has_value() || (*best)->median_us > best_us);
  }
  disk.unplug();
  EXPECT_EQ(lost + worse + unreadable, 0);
  EXPECT_GT(undone, cuts / 4);
  const json figures = {{"cuts", cuts},
                        {"operations_of_a_search", operations},
                        {"acknowledged", acknowledged_in_all},
                        {"writes_undone", undone},
                        {"acknowledged_and_lost", lost},
                        {"best_became_worse", worse},
                        {"archives_unreadable", unreadable}};
  RecordProperty("figures", figures.dump());
  keep_figures("WARPLOOM_POWER_CUTS_OUT", figures);
}
}  // namespace
}  // namespace warploom::archive
