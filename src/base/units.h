// Numbers with their units, as people read them.
#pragma once
#include <string>

namespace warploom {
// "64 KiB", "3.12 GiB": three digits, in units of 1024.
std::string bytes_text(double bytes);
}  // namespace warploom
