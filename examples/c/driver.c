/*
 * A small kernel-style UDMA driver on the simulator: 32-bit register reads and writes, memory
 * accesses, nothing else. It copies host to device, device to device and device to host, wraps its
 * rings several times, takes completion interrupts, by polling and by a handler, and checks every byte.
 *
 *     gcc -Wall -Wextra -Werror -Iinclude examples/c/driver.c -Ltarget/debug -ludma_sim -o driver
 *     LD_LIBRARY_PATH=target/debug ./driver cayman
 *
 * The first half is the driver proper. It reaches the device through readl, writel, udelay and
 * coherent host memory only; the second half supplies these and uses the driver.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "udma_sim.h"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

static u32 readl(u64 at);
static void writel(u32 value, u64 at);
static void udelay(u32 us);

/* ------------------------------------------------------------------ registers ---- */

#define UDMA_M2S 0x00000u
#define UDMA_S2M 0x20000u
#define UDMA_GEN 0x38000u
#define UDMA_Q(q) (0x1000u * ((q) + 1u))

#define Q_CFG 0x20u
#define Q_CFG_EN_PREF (1u << 16)
#define Q_CFG_EN_SCHEDULING (1u << 17) /* S2M: EN_STREAM */
#define Q_DRBP_LOW 0x28u
#define Q_DRBP_HIGH 0x2cu
#define Q_DRL 0x30u
#define Q_DRHP 0x34u
#define Q_DRTP_INC 0x38u
#define M2S_Q_RATE_LIMIT_MASK 0x74u
#define RATE_LIMIT_MASK_PAUSE_DMB (1u << 2)
#define M2S_Q_COMP_CFG 0xa0u
#define S2M_Q_COMP_CFG 0x54u
#define Q_COMP_CFG_EN_RING_UPDATE (1u << 0)
#define M2S_Q_SW_CTRL 0xb0u
#define S2M_Q_SW_CTRL 0x64u
#define Q_SW_CTRL_RST_ALL 0x10fu /* dmb, tail, head, current, queue */

#define UDMA_STATE 0x200u
#define UDMA_CHANGE_STATE 0x204u
#define CHANGE_STATE_NORMAL (1u << 0)
#define UDMA_NORMAL 0x1111u /* all four pipelines */

#define IOFIC_GROUP(n) (UDMA_GEN + 0x40u * (n))
#define IOFIC_CAUSE 0x00u
#define IOFIC_MASK_CLEAR 0x18u
#define IOFIC_GROUP_RX 1u /* S2M completions, a bit for each queue */

/* ---------------------------------------------------------------- descriptors ---- */

struct udma_desc {
    u32 len_ctrl;
    u32 meta_ctrl; /* Rx: the low half of a second buffer, 0 */
    u64 buf_ptr;
};

#define DESC_LEN_MAX 65536u /* stored as 0 */
#define DESC_RING_ID_SHIFT 24
#define DESC_FIRST (1u << 26)
#define DESC_LAST (1u << 27)
#define DESC_INT_EN (1u << 28)
#define DESC_DMB (1u << 30)            /* Tx */
#define META_PLAIN_COPY 0x01080003u
#define META_WRITE_BARRIER (1u << 26)  /* Tx */

#define RESERVED_DESCS 16u /* always kept free */
#define MARKER 0xabcdef01u

/* ---------------------------------------------------------------------- queue ---- */

struct udma_ring {
    struct udma_desc *desc; /* coherent host memory */
    u64 bus;                /* the same, as the device sees it */
    u32 next;               /* producer index */
    u32 ring_id;            /* 2-bit phase, 1 in the first lap */
    u32 done;               /* oldest descriptor not acknowledged */
};

struct udma_queue {
    u64 regs; /* of the engine */
    u32 id;
    u32 size; /* a power of two */
    struct udma_ring tx, rx;
    volatile u32 *marker; /* word 0 is copied to word 1 when a batch is done */
    u64 marker_bus;
    u32 staged; /* descriptors since the last doorbell */
};

static u64 q_reg(const struct udma_queue *q, u32 half, u32 reg)
{
    return q->regs + half + UDMA_Q(q->id) + reg;
}

static void q_update(const struct udma_queue *q, u32 half, u32 reg, u32 clear, u32 set)
{
    u64 at = q_reg(q, half, reg);
    writel((readl(at) & ~clear) | set, at);
}

static void ring_init(struct udma_queue *q, struct udma_ring *ring, u32 half)
{
    u32 sw_ctrl = half == UDMA_M2S ? M2S_Q_SW_CTRL : S2M_Q_SW_CTRL;
    u32 comp_cfg = half == UDMA_M2S ? M2S_Q_COMP_CFG : S2M_Q_COMP_CFG;

    ring->next = 0;
    ring->ring_id = 1;
    ring->done = 0;
    q_update(q, half, Q_CFG, Q_CFG_EN_PREF | Q_CFG_EN_SCHEDULING, 0);
    writel(Q_SW_CTRL_RST_ALL, q_reg(q, half, sw_ctrl));
    writel((u32)ring->bus, q_reg(q, half, Q_DRBP_LOW));
    writel((u32)(ring->bus >> 32), q_reg(q, half, Q_DRBP_HIGH));
    writel(q->size, q_reg(q, half, Q_DRL));
    q_update(q, half, comp_cfg, Q_COMP_CFG_EN_RING_UPDATE, 0);
}

/* Sets the queue up and runs its engine. False if the engine does not come up. */
static bool udma_q_init(struct udma_queue *q)
{
    static const u32 halves[] = { UDMA_M2S, UDMA_S2M };

    ring_init(q, &q->tx, UDMA_M2S);
    ring_init(q, &q->rx, UDMA_S2M);
    /* As it comes out of reset, DMB does nothing. */
    q_update(q, UDMA_M2S, M2S_Q_RATE_LIMIT_MASK, RATE_LIMIT_MASK_PAUSE_DMB, 0);
    q->marker[1] = 0;
    q->marker[0] = MARKER;
    q->staged = 0;
    for (u32 n = 0; n < 2; n++) {
        q_update(q, halves[n], Q_CFG, 0, Q_CFG_EN_PREF | Q_CFG_EN_SCHEDULING);
        writel(CHANGE_STATE_NORMAL, q->regs + halves[n] + UDMA_CHANGE_STATE);
        if (readl(q->regs + halves[n] + UDMA_STATE) != UDMA_NORMAL)
            return false;
    }
    return true;
}

static u32 ring_free(const struct udma_queue *q, const struct udma_ring *ring)
{
    return (ring->done - (ring->next + RESERVED_DESCS)) & (q->size - 1);
}

static void ring_stage(const struct udma_queue *q, struct udma_ring *ring, struct udma_desc desc)
{
    desc.len_ctrl |= ring->ring_id << DESC_RING_ID_SHIFT;
    ring->desc[ring->next] = desc;
    ring->next = (ring->next + 1) & (q->size - 1);
    if (ring->next == 0)
        ring->ring_id = (ring->ring_id + 1) & 3;
}

/* Stages one descriptor pair. False if the rings have no room, or the length makes no sense. */
static bool udma_stage(struct udma_queue *q, u64 src, u64 dst, u32 len, u32 tx_flags, u32 meta,
                       u32 rx_flags)
{
    u32 stored = len == DESC_LEN_MAX ? 0 : len;
    struct udma_desc tx = { stored | DESC_FIRST | DESC_LAST | tx_flags, META_PLAIN_COPY | meta, src };
    struct udma_desc rx = { stored | rx_flags, 0, dst };

    if (len == 0 || len > DESC_LEN_MAX)
        return false;
    if (ring_free(q, &q->tx) == 0 || ring_free(q, &q->rx) == 0)
        return false;
    ring_stage(q, &q->tx, tx);
    ring_stage(q, &q->rx, rx);
    q->staged++;
    return true;
}

/* Rings both doorbells, RX first: the destinations must be known before data flows. */
static void udma_trigger(struct udma_queue *q)
{
    __sync_synchronize();
    writel(q->staged, q_reg(q, UDMA_S2M, Q_DRTP_INC));
    writel(q->staged, q_reg(q, UDMA_M2S, Q_DRTP_INC));
}

/* Waits for the marker and acknowledges what was triggered. False if it does not come. */
static bool udma_complete(struct udma_queue *q)
{
    for (u32 us = 0; us < 100000; us++) {
        if (q->marker[1] == MARKER) {
            q->marker[1] = 0;
            q->marker[0] = MARKER;
            q->rx.done = (q->rx.done + q->staged) & (q->size - 1);
            q->tx.done = (q->tx.done + q->staged) & (q->size - 1);
            q->staged = 0;
            return true;
        }
        udelay(1);
    }
    return false;
}

/* Copies any number of bytes, as many chunks at a time as the rings hold. */
static bool udma_copy(struct udma_queue *q, u64 src, u64 dst, u64 len)
{
    u32 room = (q->size - RESERVED_DESCS) / 2; /* and one for the marker */

    while (len > 0) {
        for (u32 n = 0; n < room && len > 0; n++) {
            u32 chunk = len < DESC_LEN_MAX ? (u32)len : DESC_LEN_MAX;
            bool last = n + 1 == room || chunk == len;
            /* The marker must not overtake the data. */
            if (!udma_stage(q, src, dst, chunk, 0, last ? META_WRITE_BARRIER : 0, 0))
                return false;
            src += chunk;
            dst += chunk;
            len -= chunk;
        }
        if (!udma_stage(q, q->marker_bus, q->marker_bus + 4, 4, 0, 0, 0))
            return false;
        udma_trigger(q);
        if (!udma_complete(q))
            return false;
    }
    return true;
}

/* ------------------------------------------------------- the board and the test ---- */

struct board {
    const char *config;
    u64 engine;    /* registers of engine 0 */
    u64 host;      /* host memory, as the device sees it */
    u64 hbm[2];    /* two HBM stacks */
};

static const struct board boards[] = {
    { "sunda", 0xffff0000000, 0x100000000000, { 0x0, 0x1000000000 } },
    { "cayman", 0x1002000000, 0x400000000000, { 0x0, 0x4000000000 } },
    { "mariana", 0x1002000000, 0x400000000000, { 0x0, 0x4000000000 } },
};

#define QUEUE_ID 3u
#define RING_SIZE 64u
#define HOST_BYTES (4u << 20)
/* Offsets in host memory. */
#define TX_RING 0x0000u
#define RX_RING 0x1000u
#define COMPLETION 0x2000u
#define SOURCE 0x100000u
#define RESULT 0x200000u
#define AREA 0x100000u
/* Offset in HBM. */
#define BUFFER 0x40000u

static UdmaSimDevice device;

static void fail(const char *what)
{
    char text[512] = "";

    udma_sim_last_error(text, sizeof text);
    fprintf(stderr, "%s failed: %s\n", what, text);
    exit(1);
}

#define CHECK(call)                      \
    do {                                 \
        if ((call) != UDMA_SIM_STATUS_OK) \
            fail(#call);                 \
    } while (0)

static u32 readl(u64 at)
{
    u32 value = 0;

    CHECK(udma_sim_read_reg(device, at, &value));
    return value;
}

static void writel(u32 value, u64 at)
{
    CHECK(udma_sim_write_reg(device, at, value));
}

static void udelay(u32 us)
{
    CHECK(udma_sim_run_ns(device, 1000 * (u64)us));
}

/* Bytes that depend on where they are and on the round. */
static void fill(u8 *bytes, u32 len, u32 round)
{
    u32 state = 0x9e3779b9u * (round + 1);

    for (u32 n = 0; n < len; n++) {
        state = state * 1664525u + 1013904223u;
        bytes[n] = (u8)(state >> 24);
    }
}

/* Host to one HBM stack, to the other, and back; checks the way there and the end. */
static void round_trip(struct udma_queue *q, const struct board *board, u8 *host, u32 len, u32 round)
{
    /* No two rounds at the same alignment. */
    u32 into = round % 67;
    u64 first = board->hbm[0] + BUFFER + into;
    u64 second = board->hbm[1] + BUFFER + 3 * into;
    u8 *seen = malloc(len);

    if (!seen)
        fail("malloc");
    fill(host + SOURCE, len, round);
    memset(host + RESULT, 0, len + into);
    if (!udma_copy(q, board->host + SOURCE, first, len))
        fail("copy to the device");
    CHECK(udma_sim_read_mem(device, first, seen, len));
    if (memcmp(seen, host + SOURCE, len) != 0)
        fail("what reached the device");
    if (!udma_copy(q, first, second, len))
        fail("copy on the device");
    if (!udma_copy(q, second, board->host + RESULT + into, len))
        fail("copy to the host");
    if (memcmp(host + RESULT + into, host + SOURCE, len) != 0)
        fail("what came back");
    free(seen);
}

/* ------------------------------------------------- completion by interrupt ---- */

/* What the interrupt service routine needs, and what it has found. */
struct isr {
    struct udma_queue *q;
    u64 group; /* registers of the interrupt group */
    u32 served;
    u64 at_ns;
};

/* The interrupt service routine: is it ours, which queues, acknowledge. */
static void service(UdmaSimDevice from, const UdmaSimInterrupt *interrupt, void *context)
{
    struct isr *isr = context;
    u32 cause;

    if (from != device || interrupt->engine != 0 || interrupt->group != IOFIC_GROUP_RX)
        fail("the interrupt's source");
    cause = readl(isr->group + IOFIC_CAUSE);
    if (cause != 1u << isr->q->id)
        fail("the interrupt's cause");
    writel(~cause, isr->group + IOFIC_CAUSE);
    if (readl(isr->group + IOFIC_CAUSE) != 0)
        fail("the interrupt's acknowledge");
    isr->at_ns = interrupt->at_ns;
    isr->served++;
}

/* A copy whose Rx descriptor asks for an interrupt, and the marker of its batch behind it. */
static void copy_with_interrupt(struct udma_queue *q, const struct board *board, u8 *host, u32 seed)
{
    fill(host + SOURCE, 64, seed);
    if (!udma_stage(q, board->host + SOURCE, board->host + RESULT, 64, DESC_DMB, 0, DESC_INT_EN))
        fail("stage");
    if (!udma_stage(q, q->marker_bus, q->marker_bus + 4, 4, 0, 0, 0))
        fail("stage");
    udma_trigger(q);
    CHECK(udma_sim_run_until_idle(device, 1000000));
    if (!udma_complete(q) || memcmp(host + RESULT, host + SOURCE, 64) != 0)
        fail("the copy with an interrupt");
}

/* The interrupt of a completion, first asked for, then through a service routine. */
static void interrupt_on_completion(struct udma_queue *q, const struct board *board, u8 *host)
{
    struct isr isr = { .q = q, .group = q->regs + IOFIC_GROUP(IOFIC_GROUP_RX) };
    UdmaSimInterrupt taken;
    u64 before = 0;

    if (udma_sim_poll_interrupt(device, &taken) != UDMA_SIM_STATUS_NONE)
        fail("no interrupt yet");
    writel(~(1u << q->id), isr.group + IOFIC_MASK_CLEAR);
    copy_with_interrupt(q, board, host, 0x1234);
    CHECK(udma_sim_poll_interrupt(device, &taken));
    service(device, &taken, &isr);
    CHECK(udma_sim_set_interrupt_handler(device, service, &isr));
    for (u32 round = 2; round < 5; round++) {
        CHECK(udma_sim_now_ns(device, &before));
        copy_with_interrupt(q, board, host, round);
        if (isr.served != round || isr.at_ns <= before)
            fail("the service routine");
        if (udma_sim_poll_interrupt(device, &taken) != UDMA_SIM_STATUS_NONE)
            fail("it has taken the interrupt");
    }
    CHECK(udma_sim_set_interrupt_handler(device, NULL, NULL));
}

int main(int argc, char **argv)
{
    const char *config = argc > 1 ? argv[1] : "cayman";
    const struct board *board = NULL;
    static const u32 lens[] = { 1, 4, 63, 64, 4096, 65535, 65536, 65537, 300001, 500000 };
    u32 rounds = sizeof lens / sizeof lens[0];
    u64 ns = 0, copied = 0;
    void *memory = NULL;
    u8 *host;
    struct udma_queue q;

    for (u32 n = 0; n < sizeof boards / sizeof boards[0]; n++)
        if (strcmp(boards[n].config, config) == 0)
            board = &boards[n];
    if (!board) {
        fprintf(stderr, "no board %s; there are sunda, cayman and mariana\n", config);
        return 1;
    }
    CHECK(udma_sim_create(config, 1, &device));
    CHECK(udma_sim_map_host_memory(device, board->host, HOST_BYTES, &memory));
    host = memory;
    memset(&q, 0, sizeof q);
    q.regs = board->engine;
    q.id = QUEUE_ID;
    q.size = RING_SIZE;
    q.tx.desc = (struct udma_desc *)(host + TX_RING);
    q.tx.bus = board->host + TX_RING;
    q.rx.desc = (struct udma_desc *)(host + RX_RING);
    q.rx.bus = board->host + RX_RING;
    q.marker = (volatile u32 *)(host + COMPLETION);
    q.marker_bus = board->host + COMPLETION;
    if (!udma_q_init(&q))
        fail("queue initialisation");
    for (u32 round = 0; round < 5 * rounds; round++) {
        u32 len = lens[round % rounds];

        round_trip(&q, board, host, len, round);
        copied += 3 * (u64)len;
    }
    interrupt_on_completion(&q, board, host);
    /* The head agrees with the driver, phase and all. */
    if (readl(q_reg(&q, UDMA_M2S, Q_DRHP)) != (q.tx.ring_id << 30 | q.tx.next))
        fail("the head pointer");
    if (udma_stage(&q, 0, 0, 0, 0, 0, 0) || udma_stage(&q, 0, 0, DESC_LEN_MAX + 1, 0, 0, 0))
        fail("lengths that make no sense");
    CHECK(udma_sim_now_ns(device, &ns));
    CHECK(udma_sim_destroy(device));
    if (udma_sim_destroy(device) != UDMA_SIM_STATUS_BAD_DEVICE)
        fail("a second destroy");
    printf("%s: %" PRIu64 " bytes copied and checked in %" PRIu64 " ns\n", config, copied, ns);
    return 0;
}
