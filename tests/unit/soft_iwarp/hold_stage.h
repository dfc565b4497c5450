// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stage for small messages that wait for each other (transfer/hold.h). The clock stands still
 * until the test moves it. Linked with --wrap of the functions below.
 */
#ifndef TESTS_SOFT_IWARP_HOLD_STAGE_H
#define TESTS_SOFT_IWARP_HOLD_STAGE_H

#include "flow_stage.h"
#include "forced_mss.h"
#include "frozen_clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "core/transport.h"
#include "soft/iwarp/engine/engine.h"
#include "soft/iwarp/transfer/frame.h"
#include "soft/iwarp/transfer/hold.h"

static _Atomic unsigned calls; /* of sendmsg */
static bool is_swallowing;     /* it takes everything, and sends nothing */

ssize_t __real_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	atomic_fetch_add(&calls, 1);
	/* a call may take longer than a gap between two posts of a stream */
	if (atomic_load(&frozen_ns))
		atomic_fetch_add(&frozen_ns, IW_HOLD_GAP_NS + 1);
	return is_swallowing ? (ssize_t)size_of(message)
			     : __real_iw_socket_sendmsg(fd, message, flags);
}

static unsigned kicks; /* by the thread of the test */

void __real_iw_engine_kick(struct iw_engine *engine);
void __wrap_iw_engine_kick(struct iw_engine *engine);
void __wrap_iw_engine_kick(struct iw_engine *engine)
{
	kicks += (unsigned)pthread_equal(pthread_self(), stage.thread);
	__real_iw_engine_kick(engine);
}

/* Has the thread that posted no processor? */
static bool is_preempted;
static uint64_t preempted_limit_ns; /* of the processor time that it may have used */

bool __wrap_soft_poller_is_preempted(const struct soft_poller *poller, uint64_t most_ns);
bool __wrap_soft_poller_is_preempted(const struct soft_poller *poller, uint64_t most_ns)
{
	if (poller != &conn_of_flow()->stream.tx.hold.poster)
		return false;
	preempted_limit_ns = most_ns;
	return is_preempted;
}

/* --- the stage --- */

#define WORD 4u

static inline void freeze(void)
{
	atomic_store(&frozen_ns, core_now_ns());
}

/* The service thread measures time when a connection ends. */
static inline void thaw(void)
{
	atomic_store(&frozen_ns, 0);
}

/* So that no thread of the library watches for polls, with a clock that stands still. */
static inline void sleep_once(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	assert_int_equal(DAT_GET_TYPE(core_evd_wait(stage.evd, 1000, 1, &event, &more)),
			 DAT_TIMEOUT_EXPIRED);
}

/* A foreign responder. Without Reads there are no proofs. */
static inline int open_calling_with(void **state, uint32_t reads)
{
	struct taken rtr;

	thaw();
	atomic_store(&forced_mss, 0);
	(void)open_sleepy(state);
	be_calling_with(0, reads, reads);
	get_fpdu(&rtr);
	sleep_once();
	freeze();
	return 0;
}

static inline int open_calling(void **state)
{
	return open_calling_with(state, 0);
}

static inline void pass_time(uint64_t ns)
{
	atomic_fetch_add(&frozen_ns, ns);
}

static inline void post_quietly(unsigned count, size_t size)
{
	for (unsigned i = 0; i < count; i++)
		post_send_at(0, size, DAT_COMPLETION_SUPPRESS_FLAG);
}

/* Posts that make a stream; those are sent at once. */
static inline void begin_stream(void)
{
	atomic_store(&calls, 0);
	post_quietly(IW_HOLD_AFTER, WORD);
	assert_int_equal(atomic_load(&calls), IW_HOLD_AFTER);
	atomic_store(&calls, 0);
}

static inline void take_sends(unsigned count, size_t size)
{
	struct taken taken;

	for (unsigned i = 0; i < count; i++) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
		assert_int_equal(taken.size, size);
	}
}

static inline void take_message(size_t size)
{
	struct taken taken;

	for (size_t at = 0; at < size; at += taken.size)
		get_fpdu(&taken);
}

static inline void expect_calls(unsigned count)
{
	assert_int_equal(atomic_load(&calls), count);
}

static inline struct iw_engine *engine_of_flow(void)
{
	return conn_of_flow()->engine;
}

static inline void end_calling(void)
{
	thaw();
	hang_up();
}

/* One call has sent all that was held. */
static inline void end_stream(void)
{
	struct iw_conn *conn = conn_of_flow();
	struct core_ep *ep = iw_conn_enter(conn);

	assert_non_null(ep);
	assert_false(iw_frame_has_unsent(conn));
	core_ep_leave(ep);
	expect_calls(1);
	end_calling();
}

#endif
