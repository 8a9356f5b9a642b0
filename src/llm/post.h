// post(): one HTTP POST whose answer comes in pieces, by libcurl.
//
// libcurl is opened at run time (libcurl.so.4, whose interface has not changed since 2006): its
// static archive would carry TLS, Kerberos and LDAP into the executable, and whoever uses no model
// needs none of it. Only http and https are spoken, redirections are not followed, so that a key
// goes where the user said and nowhere else, and certificates are checked.
//
//   const Result<Posted> done = post({.url = "http://127.0.0.1:8080/v1/chat/completions",
//                                     .body = text,
//                                     .on_bytes = [&](std::string_view part) { … }});
//   done->status                                                // 200, 429, …
//
// Times are seconds. Errors: no-curl; model-unreachable (no such host, refused, a broken
// connection, TLS); model-timeout; model-too-large; interrupted, where `is_ended` said so.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"

namespace warploom::llm {
struct Post {
  std::string url;
  std::vector<std::string> headers;  // "Content-Type: application/json"
  std::string body;
  double connect_seconds = 10;
  double idle_seconds = 120;  // without a byte
  double seconds = 600;       // all of it
  size_t most_bytes = 4 << 20;
  std::function<void(std::string_view)> on_bytes;
  std::function<bool()> is_ended = {};  // asked about once a second
};

struct Posted {
  int status = 0;           // of HTTP
  double retry_after = -1;  // seconds that the server asks to wait; -1: it does not say
};

// The URL without its query and fragment, for messages.
std::string place_of(const std::string& url);

// Why libcurl cannot be used, or ok.
Status check_curl();
Result<Posted> post(const Post& request);
}  // namespace warploom::llm
