// Simulator of UDMA engines, C interface. Generated from c-library/src: do not edit.

#ifndef UDMA_SIM_H
#define UDMA_SIM_H

#include <stdint.h>

// How a call ended. Errors are negative; udma_sim_last_error has the text of whatever is not
// UDMA_SIM_STATUS_OK or UDMA_SIM_STATUS_NONE.
enum UdmaSimStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  UDMA_SIM_STATUS_OK = 0,
  // There is nothing to take.
  UDMA_SIM_STATUS_NONE = 1,
  // Time ran out first.
  UDMA_SIM_STATUS_TIMED_OUT = 2,
  // Nothing is left that could happen, and what was waited for has not.
  UDMA_SIM_STATUS_STUCK = 3,
  // A pointer is NULL that must not be.
  UDMA_SIM_STATUS_NULL_POINTER = -1,
  // There is no such device, or no longer.
  UDMA_SIM_STATUS_BAD_DEVICE = -2,
  // The device belongs to another thread.
  UDMA_SIM_STATUS_WRONG_THREAD = -3,
  // An argument makes no sense.
  UDMA_SIM_STATUS_BAD_ARGUMENT = -4,
  // There is no such config, it is not valid, or its memory cannot be mapped.
  UDMA_SIM_STATUS_BAD_CONFIG = -5,
  // The bus refused the access.
  UDMA_SIM_STATUS_REFUSED = -6,
  // The simulator failed. The device is lost and can only be destroyed.
  UDMA_SIM_STATUS_FAILED = -7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum UdmaSimStatus UdmaSimStatus;
#else
typedef int32_t UdmaSimStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A simulated machine. 0 is none.
typedef uint64_t UdmaSimDevice;

// An interrupt that a UDMA unit sent to the host.
typedef struct UdmaSimInterrupt {
  // The engine: those of the NeuronCores first (core * 16 + n), then the host engines.
  uint32_t engine;
  // The main interrupt group.
  uint32_t group;
  // When it was sent, in nanoseconds of simulated time.
  uint64_t at_ns;
} UdmaSimInterrupt;

// What a machine calls when a UDMA unit interrupts the host, on the thread that the machine belongs to. It
// may use the machine as anybody does.
typedef void (*UdmaSimInterruptHandler)(UdmaSimDevice device,
                                        const struct UdmaSimInterrupt *interrupt,
                                        void *context);

// A register that the model does not have and somebody has touched: it holds what was written and does nothing.
typedef struct UdmaSimRegister {
  // Its physical address.
  uint64_t at;
  // How often the host has read it.
  uint64_t reads;
  // How often host and engines have written it.
  uint64_t writes;
  // What it holds.
  uint32_t value;
  // The engine or block it belongs to and its offset there, with a zero byte at the end.
  char name[52];
} UdmaSimRegister;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates a machine fresh from reset, which belongs to the calling thread.
//
// `config` is the name of a built-in config (sunda, cayman, mariana) or the path of a file; `seed`
// seeds every random stream; `*device` becomes its number.
//
// # Safety
// `config` is NULL or points to a string that ends with a zero byte, `device` is NULL or points to
// writable memory for the number.
UdmaSimStatus udma_sim_create(const char *config, uint64_t seed, UdmaSimDevice *device);

// Destroys a machine. Pointers into its host memory are then invalid.
UdmaSimStatus udma_sim_destroy(UdmaSimDevice device);

// Maps host memory into the caller: `*memory` points to the `len` bytes at physical address `at`,
// until the machine is destroyed. The caller may access them whenever it is not inside a call.
//
// # Safety
// `memory` is NULL or points to writable memory for a pointer.
UdmaSimStatus udma_sim_map_host_memory(UdmaSimDevice device,
                                       uint64_t at,
                                       uint64_t len,
                                       void **memory);

// Reads the 32-bit register at physical address `at`. Takes a bus round trip of simulated time.
//
// # Safety
// `value` is NULL or points to writable memory for the value.
UdmaSimStatus udma_sim_read_reg(UdmaSimDevice device, uint64_t at, uint32_t *value);

// Writes the 32-bit register at physical address `at`. The write is posted: it arrives as simulated
// time passes, after the earlier ones.
UdmaSimStatus udma_sim_write_reg(UdmaSimDevice device, uint64_t at, uint32_t value);

// Reads `len` bytes of memory at physical address `at` into `bytes`.
//
// # Safety
// `bytes` is NULL or points to `len` writable bytes.
UdmaSimStatus udma_sim_read_mem(UdmaSimDevice device, uint64_t at, void *bytes, uint64_t len);

// Writes `len` bytes from `bytes` to memory at physical address `at`, at once.
//
// # Safety
// `bytes` is NULL or points to `len` readable bytes.
UdmaSimStatus udma_sim_write_mem(UdmaSimDevice device,
                                 uint64_t at,
                                 const void *bytes,
                                 uint64_t len);

// Lets `ns` nanoseconds of simulated time pass. Time ends after a little over five hours: the rest
// of `ns` then does not pass, and the call times out.
UdmaSimStatus udma_sim_run_ns(UdmaSimDevice device, uint64_t ns);

// Lets simulated time pass until every engine has completed all that its doorbells covered, at most
// `timeout_ns` nanoseconds.
UdmaSimStatus udma_sim_run_until_idle(UdmaSimDevice device, uint64_t timeout_ns);

// Sets what is called for every interrupt, or with NULL that nothing is. `context` is handed to each call.
//
// It is called from within udma_sim_run_ns, udma_sim_run_until_idle and udma_sim_read_reg, for each interrupt
// in its turn; simulated time stands still meanwhile, but for what the handler itself lets pass. Interrupts that come
// while it runs wait until it has returned. What it takes is not there for udma_sim_poll_interrupt.
//
// # Safety
// Until another handler is set or the machine is destroyed, `handler` is NULL or may be called with `context`,
// and returns: it neither throws nor jumps out of the call.
UdmaSimStatus udma_sim_set_interrupt_handler(UdmaSimDevice device,
                                             UdmaSimInterruptHandler handler,
                                             void *context);

// Takes the oldest interrupt that has not been taken; UDMA_SIM_STATUS_NONE if there is none.
//
// # Safety
// `interrupt` is NULL or points to writable memory for one.
UdmaSimStatus udma_sim_poll_interrupt(UdmaSimDevice device, struct UdmaSimInterrupt *interrupt);

// The register number `index` among those that the model does not have and somebody has touched, engine by
// engine, then by address; UDMA_SIM_STATUS_NONE if there are not so many.
//
// # Safety
// `found` is NULL or points to writable memory for one.
UdmaSimStatus udma_sim_unmodelled_register(UdmaSimDevice device,
                                           uint64_t index,
                                           struct UdmaSimRegister *found);

// Simulated time in nanoseconds.
//
// # Safety
// `ns` is NULL or points to writable memory for the value.
UdmaSimStatus udma_sim_now_ns(UdmaSimDevice device, uint64_t *ns);

// What the last call of this thread that did not return UDMA_SIM_STATUS_OK had to say.
//
// Copies as much of the text as fits into `capacity` bytes, with a zero byte at the end, and returns
// the length of the whole text without it. `text` may be NULL if `capacity` is 0.
//
// # Safety
// `text` is NULL or points to `capacity` writable bytes.
uint64_t udma_sim_last_error(char *text,
                             uint64_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* UDMA_SIM_H */
