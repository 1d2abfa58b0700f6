// For test programs that run GStreamer pipelines under the address sanitizer: GLib replaces the
// table of its quarks when it grows and keeps the old one for readers without a lock, a leak by
// design. It was allocated by GLib's initialiser, which only a full unwinding of the stack can
// tell.
#define PATTERND_SEEN_BY_SANITIZER __attribute__((visibility("default")))

extern "C" {

PATTERND_SEEN_BY_SANITIZER const char* __asan_default_options() {
  return "fast_unwind_on_malloc=0";
}
PATTERND_SEEN_BY_SANITIZER const char* __lsan_default_suppressions() { return "leak:_dl_init\n"; }
}
