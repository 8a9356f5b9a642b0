#include "llm/post.h"
#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/error.h"
#include "runtime/library.h"

namespace warploom::llm {
namespace {
using Clock = std::chrono::steady_clock;

// What is used of libcurl's interface. Source: curl/curl.h, whose numbers never change.
enum Option : int {
  kWriteData = 10001,
  kUrl = 10002,
  kProxy = 10004,
  kErrorBuffer = 10010,
  kPostFields = 10015,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kProgressData = 10057,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
  kProgressFunction = 20219,
  kNoProgress = 43,
  kPost = 47,
  kNoSignal = 99,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kProtocols = 181,
  kPostFieldSizeLarge = 30120,
};

enum Code : int { kFine = 0, kTimedOut = 28 };

constexpr long kHttpAndHttps = 3;
constexpr int kResponseCode = 0x200002;
constexpr long kEverything = 3;
constexpr size_t kErrorBytes = 256;

struct Curl {
  runtime::Library library{"libcurl.so.4", "libcurl-gnutls.so.4"};
  int (*const global_init)(long) = library["curl_global_init"];
  void* (*const easy_init)() = library["curl_easy_init"];
  int (*const set)(void*, int, ...) = library["curl_easy_setopt"];
  int (*const perform)(void*) = library["curl_easy_perform"];
  int (*const get)(void*, int, ...) = library["curl_easy_getinfo"];
  void (*const cleanup)(void*) = library["curl_easy_cleanup"];
  const char* (*const words_of)(int) = library["curl_easy_strerror"];
  void* (*const append)(void*, const char*) = library["curl_slist_append"];
  void (*const free_list)(void*) = library["curl_slist_free_all"];
  const bool ready = library.complete() && global_init(kEverything) == kFine;
};

const Curl& curl() {
  static const Curl opened;
  return opened;
}

// What a transfer is at, for its callbacks.
struct Transfer {
  const Post* request;
  size_t bytes = 0;
  Clock::time_point last = Clock::now();
  bool is_too_large = false;
  bool is_idle = false;
  bool is_ended = false;
  double retry_after = -1;
};

size_t take_bytes(const char* bytes, size_t size, size_t count, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  const size_t length = size * count;
  transfer.last = Clock::now();
  transfer.bytes += length;
  transfer.is_too_large = transfer.bytes > transfer.request->most_bytes;
  if (transfer.is_too_large) return 0;  // ends the transfer
  transfer.request->on_bytes({bytes, length});
  return length;
}

size_t take_header(const char* bytes, size_t size, size_t count, void* data) {
  constexpr std::string_view kName = "retry-after:";
  auto& transfer = *static_cast<Transfer*>(data);
  const std::string_view line(bytes, size * count);
  const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); };
  const bool is_it =
      line.size() > kName.size() && std::ranges::equal(kName, line.substr(0, kName.size()), same);
  if (is_it) {
    const std::string value(line.substr(kName.size()));
    char* end = nullptr;
    const double seconds = std::strtod(value.c_str(), &end);
    // A date instead of a number is not read: the usual pause does.
    if (end != value.c_str() && seconds >= 0) transfer.retry_after = seconds;
  }
  return size * count;
}

int look(void* data, long long, long long, long long, long long) {
  auto& transfer = *static_cast<Transfer*>(data);
  const Post& request = *transfer.request;
  const std::chrono::duration<double> since = Clock::now() - transfer.last;
  transfer.is_idle = since.count() > request.idle_seconds;
  transfer.is_ended = request.is_ended && request.is_ended();
  return transfer.is_idle || transfer.is_ended ? 1 : 0;
}

bool is_loopback(std::string_view url) {
  const size_t scheme = url.find("://");
  const std::string_view rest = scheme == url.npos ? url : url.substr(scheme + 3);
  const auto begins = [&](std::string_view host) { return rest.starts_with(host); };
  return begins("127.") || begins("localhost") || begins("[::1]");
}

Error failure_of(int code, const Transfer& transfer, const char* words) {
  const Post& request = *transfer.request;
  const std::string place = place_of(request.url);
  if (transfer.is_ended)
    return {ErrorCode::kInterrupted, "interrupted while a model was asked", place};
  Error error{ErrorCode::kModelUnreachable, "the model's endpoint could not be reached"};
  error.place = place;
  error.found = *words != '\0' ? std::string(words) : std::string(curl().words_of(code));
  error.remedy = "see whether the server runs at that address: curl -v " + place;
  if (transfer.is_too_large) {
    error.code = ErrorCode::kModelTooLarge;
    error.message = "the model's answer is too large";
    error.expected = fmt::format("at most {} bytes", request.most_bytes);
    error.found = "more";
    error.remedy = "see what answers there";
  } else if (transfer.is_idle || code == kTimedOut) {
    error.code = ErrorCode::kModelTimeout;
    error.message = "the model's endpoint did not answer in time";
    error.expected = fmt::format("a byte within {:g} s, all within {:g} s", request.idle_seconds,
                                 request.seconds);
    error.remedy = "give it longer with --llm-timeout";
  }
  return error;
}

// TLS may write to a connection that is gone: without SIGPIPE for this thread, and without one left
// behind.
class WithoutPipeSignals {
 public:
  WithoutPipeSignals() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }

  ~WithoutPipeSignals() {
    const timespec at_once{};
    if (::sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  WithoutPipeSignals(const WithoutPipeSignals&) = delete;
  WithoutPipeSignals& operator=(const WithoutPipeSignals&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

long milliseconds(double seconds) {
  return std::max(1L, static_cast<long>(1e3 * seconds));
}

// The options of one transfer. Values live as long as it.
void set_options(void* handle, const Post& request, Transfer& transfer, void* headers,
                 char* words) {
  const Curl& api = curl();
  api.set(handle, kUrl, request.url.c_str());
  api.set(handle, kErrorBuffer, words);
  api.set(handle, kProtocols, kHttpAndHttps);
  api.set(handle, kNoSignal, 1L);
  api.set(handle, kPost, 1L);
  api.set(handle, kPostFields, request.body.c_str());
  api.set(handle, kPostFieldSizeLarge, static_cast<long long>(request.body.size()));
  api.set(handle, kHttpHeader, headers);
  api.set(handle, kConnectTimeoutMs, milliseconds(request.connect_seconds));
  api.set(handle, kTimeoutMs, milliseconds(request.seconds));
  api.set(handle, kWriteFunction, &take_bytes);
  api.set(handle, kWriteData, &transfer);
  api.set(handle, kHeaderFunction, &take_header);
  api.set(handle, kHeaderData, &transfer);
  api.set(handle, kNoProgress, 0L);
  api.set(handle, kProgressFunction, &look);
  api.set(handle, kProgressData, &transfer);
  // A proxy is for the world outside.
  if (is_loopback(request.url)) api.set(handle, kProxy, "");
}
}  // namespace

std::string place_of(const std::string& url) {
  return url.substr(0, url.find_first_of("?#"));
}

Status check_curl() {
  if (curl().ready) return ok();
  const runtime::Library& library = curl().library;
  Error error{ErrorCode::kNoCurl, "no libcurl was found to reach a model by"};
  error.expected = "libcurl.so.4";
  error.found = library ? "without " + library.missing() : library.why_not();
  error.remedy = "install libcurl4";
  return fail(error);
}

Result<Posted> post(const Post& request) {
  WARPLOOM_CHECK(check_curl());
  const Curl& api = curl();
  const std::unique_ptr<void, void (*)(void*)> handle(api.easy_init(), api.cleanup);
  if (!handle) return fail({ErrorCode::kOutOfMemory, "libcurl has no memory for a transfer"});
  void* list = nullptr;
  for (const std::string& header : request.headers)
    list = api.append(list, header.c_str());
  const std::unique_ptr<void, void (*)(void*)> headers(list, api.free_list);
  std::array<char, kErrorBytes> words{};
  Transfer transfer{.request = &request};
  set_options(handle.get(), request, transfer, headers.get(), words.data());
  const WithoutPipeSignals quiet;
  const int code = api.perform(handle.get());
  if (code != kFine) return fail(failure_of(code, transfer, words.data()));
  long status = 0;
  api.get(handle.get(), kResponseCode, &status);
  return Posted{as_int(status), transfer.retry_after};
}
}  // namespace warploom::llm
