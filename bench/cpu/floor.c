// What a CPU kernel is measured against: a naive loop nest (one thread, as a person writes it first) and the rate at which all
// cores copy memory past the caches, on pages of 4 KiB and on huge ones. Prints seconds and bytes a second.
// Usage: floor N MEGABYTES THREADS
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void naive(int n, const float* a, const float* b, float* c) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
}

struct Part {
  const char* from;
  char* to;
  size_t bytes;
};
static void* copy(void* argument) {
  const struct Part* p = argument;
  for (size_t i = 0; i < p->bytes; i += 32)
    _mm256_stream_si256((__m256i*)(p->to + i), _mm256_load_si256((const __m256i*)(p->from + i)));
  _mm_sfence();
  return NULL;
}

static double copy_rate(size_t bytes, int threads, int huge) {
  char *from = aligned_alloc(2 << 20, bytes), *to = aligned_alloc(2 << 20, bytes);
  madvise(from, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE), madvise(to, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  memset(from, 1, bytes), memset(to, 2, bytes);
  double rate = 0;
  for (int turn = 0; turn < 9; ++turn) {
    pthread_t ids[256];
    struct Part parts[256];
    const double start = now();
    for (int i = 0; i < threads; ++i) {
      const size_t share = bytes / threads / 32 * 32;
      parts[i] = (struct Part){from + i * share, to + i * share, share};
      pthread_create(&ids[i], NULL, copy, &parts[i]);
    }
    for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
    const double r = 2.0 * bytes / (now() - start);
    if (r > rate) rate = r;
  }
  free(from), free(to);
  return rate;
}

int main(int argc, char** argv) {
  const int n = atoi(argv[1]), threads = atoi(argv[3]);
  const size_t bytes = (size_t)atoi(argv[2]) << 20;
  float *a = malloc(4ul * n * n), *b = malloc(4ul * n * n), *c = malloc(4ul * n * n);
  for (int i = 0; i < n * n; ++i) a[i] = i % 7, b[i] = i % 5;
  double best = 1e9;
  for (int turn = 0; turn < 3; ++turn) {
    const double start = now();
    naive(n, a, b, c);
    const double took = now() - start;
    if (took < best) best = took;
  }
  const double small_pages = copy_rate(bytes, threads, 0), huge_pages = copy_rate(bytes, threads, 1);
  printf("%.9f %.0f %.0f %.0f\n", best, small_pages, huge_pages, (double)c[n]);  // c: so that it is computed
  return 0;
}
