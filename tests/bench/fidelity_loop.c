/* The leanest timed loop over ONNX Runtime: its C API on the wheel's own shared library, nothing in between.

   usage: fidelity_loop LIBRARY MODEL SPEC WARMUP_S WINDOW_S TURNS CORE
   TURNS: the folder with the pipes of worker.runner.interleaving, whose rules it follows; CORE: the core it keeps to, or -1.
   SPEC, one tensor a line: in|out NAME ELEMENT_TYPE BYTES FILE|- RANK DIM…
   Prints p50 and mean in nanoseconds, the number of runs, and the nanoseconds of session creation.

   OrtApi is a table that is only ever appended to; the slots used here have had the same place since 1.0 and are the
   n-th member of `struct OrtApi` in onnxruntime_c_api.h.                                                             */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *Handle;
typedef struct { const void *const *(*get_api)(uint32_t version); const char *(*get_version)(void); } ApiBase;

enum { ERROR_MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION = 7, RUN = 9, CREATE_OPTIONS = 10, OPTIMIZATION = 23,
       INTRA_THREADS = 24, INTER_THREADS = 25, TENSOR_WITH_DATA = 49, CPU_MEMORY = 69 };
enum { MOST = 64, ALL_OPTIMIZATIONS = 99, WARNING = 2, ARENA_ALLOCATOR = 1, DEFAULT_MEMORY = 0 };

typedef Handle (*CreateEnv)(int level, const char *id, Handle *out);
typedef Handle (*CreateOptions)(Handle *out);
typedef Handle (*SetNumber)(Handle options, int value);
typedef Handle (*CreateSession)(Handle env, const char *path, Handle options, Handle *out);
typedef Handle (*CpuMemory)(int allocator, int memory, Handle *out);
typedef Handle (*TensorWithData)(Handle memory, void *data, size_t bytes, const int64_t *shape, size_t rank, int type,
                                 Handle *out);
typedef Handle (*Run)(Handle session, Handle options, const char *const *in_names, const Handle *in, size_t in_count,
                      const char *const *out_names, size_t out_count, Handle *out);
typedef const char *(*ErrorMessage)(Handle status);

static const int64_t TURN_NS = 20000000;
static const void *const *api;
static int go, said;

static void check(Handle status) {
  if (!status) return;
  fprintf(stderr, "%s\n", ((ErrorMessage)api[ERROR_MESSAGE])(status));
  exit(1);
}

static int64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void hand_over(char word) {
  if (write(said, &word, 1) != 1 || read(go, &word, 1) != 1) exit(1);
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static Handle tensor(Handle memory, int type, size_t bytes, const char *file, size_t rank, const int64_t *shape) {
  void *data = NULL;
  Handle value = NULL;
  if (posix_memalign(&data, 64, bytes ? bytes : 1)) exit(2);
  memset(data, 0, bytes);
  if (strcmp(file, "-")) {
    FILE *stored = fopen(file, "rb");
    if (!stored || fread(data, 1, bytes, stored) != bytes) { perror(file); exit(2); }
    fclose(stored);
  }
  check(((TensorWithData)api[TENSOR_WITH_DATA])(memory, data, bytes, shape, rank, type, &value));
  return value;
}

int main(int count, char **words) {
  if (count != 8) { fprintf(stderr, "usage: fidelity_loop LIBRARY MODEL SPEC WARMUP_S WINDOW_S TURNS CORE\n"); return 2; }
  if (atoi(words[7]) >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(atoi(words[7]), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  char pipe[1024];
  snprintf(pipe, sizeof pipe, "%s/go", words[6]);
  go = open(pipe, O_RDONLY);
  snprintf(pipe, sizeof pipe, "%s/said", words[6]);
  said = open(pipe, O_WRONLY);
  if (go < 0 || said < 0) { perror(pipe); return 2; }
  void *library = dlopen(words[1], RTLD_NOW);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); return 2; }
  const ApiBase *(*base)(void) = (const ApiBase *(*)(void))dlsym(library, "OrtGetApiBase");
  if (!base || !(api = base()->get_api(11))) { fprintf(stderr, "this library has no C API of version 11\n"); return 2; }

  Handle env = NULL, options = NULL, session = NULL, memory = NULL;
  check(((CreateEnv)api[CREATE_ENV])(WARNING, "fidelity", &env));
  check(((CreateOptions)api[CREATE_OPTIONS])(&options));
  check(((SetNumber)api[INTRA_THREADS])(options, 1));
  check(((SetNumber)api[INTER_THREADS])(options, 1));
  check(((SetNumber)api[OPTIMIZATION])(options, ALL_OPTIMIZATIONS));
  int64_t began = now();
  check(((CreateSession)api[CREATE_SESSION])(env, words[2], options, &session));
  int64_t session_ns = now() - began;
  check(((CpuMemory)api[CPU_MEMORY])(ARENA_ALLOCATOR, DEFAULT_MEMORY, &memory));

  Handle in[MOST], out[MOST];
  const char *in_names[MOST], *out_names[MOST];
  size_t ins = 0, outs = 0, bytes, rank;
  char side[4], name[256], file[1024];
  int type;
  FILE *spec = fopen(words[3], "r");
  if (!spec) { perror(words[3]); return 2; }
  while (fscanf(spec, "%3s %255s %d %zu %1023s %zu", side, name, &type, &bytes, file, &rank) == 6) {
    int64_t shape[16];
    if (rank > 16 || ins >= MOST || outs >= MOST) return 2;
    for (size_t i = 0; i < rank; i++)
      if (fscanf(spec, "%ld", &shape[i]) != 1) return 2;
    Handle value = tensor(memory, type, bytes, file, rank, shape);
    if (!strcmp(side, "in")) { in_names[ins] = strdup(name); in[ins++] = value; }
    else { out_names[outs] = strdup(name); out[outs++] = value; }
  }
  fclose(spec);

  Run run = (Run)api[RUN];
  int64_t until = now() + (int64_t)(atof(words[4]) * 1e9);
  do check(run(session, NULL, in_names, in, ins, out_names, outs, out)); while (now() < until);

  size_t runs = 0, room = 1 << 20;
  int64_t *spent = malloc(room * sizeof *spent), before, after;
  hand_over('m');
  check(run(session, NULL, in_names, in, ins, out_names, outs, out));
  after = now();
  until = after + (int64_t)(atof(words[5]) * 1e9);
  int64_t turn_ends = after + TURN_NS;
  do {
    if (after >= turn_ends) {
      int64_t left = now();
      hand_over('m');
      if (spent[runs - 1] <= TURN_NS) check(run(session, NULL, in_names, in, ins, out_names, outs, out));
      turn_ends = now() + TURN_NS;
      until += turn_ends - TURN_NS - left;
    }
    before = now();
    check(run(session, NULL, in_names, in, ins, out_names, outs, out));
    after = now();
    if (runs == room && !(spent = realloc(spent, (room *= 2) * sizeof *spent))) return 2;
    spent[runs++] = after - before;
  } while (after < until);
  hand_over('d');
  int64_t total = 0;
  for (size_t i = 0; i < runs; i++) total += spent[i];
  qsort(spent, runs, sizeof *spent, by_size);
  int64_t p50 = runs % 2 ? spent[runs / 2] : (spent[runs / 2 - 1] + spent[runs / 2]) / 2;
  printf("%ld %ld %zu %ld\n", p50, total / (int64_t)runs, runs, session_ns);
  return 0;
}
