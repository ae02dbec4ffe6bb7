// Simulator of UDMA engines, C interface. Generated from c-library/src: do not edit.

#ifndef UDMA_SIM_H
#define UDMA_SIM_H

#include <stdint.h>

// The result of a call. Errors are negative; udma_sim_last_error gives the message for every result other than UDMA_SIM_STATUS_OK and UDMA_SIM_STATUS_NONE.
enum UdmaSimStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  UDMA_SIM_STATUS_OK = 0,
  // Nothing is available.
  UDMA_SIM_STATUS_NONE = 1,
  // The time-out passed first.
  UDMA_SIM_STATUS_TIMED_OUT = 2,
  // No work is left and the condition was not met.
  UDMA_SIM_STATUS_STUCK = 3,
  // A pointer that must not be NULL is NULL.
  UDMA_SIM_STATUS_NULL_POINTER = -1,
  // The device does not exist, or was destroyed.
  UDMA_SIM_STATUS_BAD_DEVICE = -2,
  // The device belongs to another thread.
  UDMA_SIM_STATUS_WRONG_THREAD = -3,
  // An argument is invalid.
  UDMA_SIM_STATUS_BAD_ARGUMENT = -4,
  // The config does not exist or is invalid, or its memory cannot be mapped.
  UDMA_SIM_STATUS_BAD_CONFIG = -5,
  // The bus refused the access.
  UDMA_SIM_STATUS_REFUSED = -6,
  // An internal failure. The device is lost and can only be destroyed.
  UDMA_SIM_STATUS_FAILED = -7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum UdmaSimStatus UdmaSimStatus;
#else
typedef int32_t UdmaSimStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A handle of a simulated machine. 0 is never a valid handle.
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

// Called when a UDMA unit interrupts the host, on the thread that owns the machine. The handler may call any function on the machine.
typedef void (*UdmaSimInterruptHandler)(UdmaSimDevice device,
                                        const struct UdmaSimInterrupt *interrupt,
                                        void *context);

// A register that is not modelled and has been accessed: it keeps the written value and has no effect.
typedef struct UdmaSimRegister {
  // Its physical address.
  uint64_t at;
  // How often the host has read it.
  uint64_t reads;
  // How often host and engines have written it.
  uint64_t writes;
  // Its value.
  uint32_t value;
  // Its engine or block and its offset there, as a zero-terminated string.
  char name[52];
} UdmaSimRegister;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates a machine in its reset state, owned by the calling thread.
//
// `config` is the name of a built-in config (sunda, cayman, mariana) or the path of a file; `seed`
// seeds every random stream; the handle is stored in `*device`.
//
// # Safety
// `config` is NULL or points to a zero-terminated string, `device` is NULL or points to
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

// Reads the 32-bit register at physical address `at`. It takes the simulated time of a bus round trip.
//
// # Safety
// `value` is NULL or points to writable memory for the value.
UdmaSimStatus udma_sim_read_reg(UdmaSimDevice device,
                                uint64_t at,
                                uint32_t *value);

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

// Advances simulated time by `ns` nanoseconds. Simulated time ends after a little over five hours: a call that would exceed this stops there and times out.
UdmaSimStatus udma_sim_run_ns(UdmaSimDevice device,
                              uint64_t ns);

// Advances simulated time until every engine has completed everything that its doorbells announced, by at most `timeout_ns` nanoseconds.
UdmaSimStatus udma_sim_run_until_idle(UdmaSimDevice device,
                                      uint64_t timeout_ns);

// Sets the handler that is called for every interrupt; NULL removes it. `context` is passed to each call.
//
// It is called from within udma_sim_run_ns, udma_sim_run_until_idle and udma_sim_read_reg, once per interrupt and in order. Simulated time stands still during the call unless the handler itself advances it. Interrupts that arrive meanwhile are delivered after it returns. Interrupts passed to the handler are not returned by udma_sim_poll_interrupt.
//
// # Safety
// Until another handler is set or the machine is destroyed, `handler` is NULL or may be called with `context`,
// and returns: it neither throws nor jumps out of the call.
UdmaSimStatus udma_sim_set_interrupt_handler(UdmaSimDevice device,
                                             UdmaSimInterruptHandler handler,
                                             void *context);

// Removes and returns the oldest pending interrupt; UDMA_SIM_STATUS_NONE if there is none.
//
// # Safety
// `interrupt` is NULL or points to writable memory for one.
UdmaSimStatus udma_sim_poll_interrupt(UdmaSimDevice device, struct UdmaSimInterrupt *interrupt);

// Returns entry `index` of the list of accessed registers that are not modelled, ordered by engine, then by address; UDMA_SIM_STATUS_NONE at the end of the list.
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

// The message of the last call on this thread that did not return UDMA_SIM_STATUS_OK.
//
// Copies as much of the text as fits into `capacity` bytes, including a terminating zero byte, and returns the length of the whole text without it. `text` may be NULL if `capacity` is 0.
//
// # Safety
// `text` is NULL or points to `capacity` writable bytes.
uint64_t udma_sim_last_error(char *text,
                             uint64_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* UDMA_SIM_H */
