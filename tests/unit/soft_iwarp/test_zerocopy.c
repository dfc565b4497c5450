// SPDX-License-Identifier: BSD-2-Clause
/*
 * Large payloads that the kernel does not copy: what waits for its notices, and the ends of a
 * connection meanwhile. The notices are made up by the test, or come from the kernel when the peer
 * has room for the bytes.
 */
#include "flow_stage.h"
#include "forced_mss.h"

#include <limits.h>
#include <linux/errqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "../../lib/ability.h"
#include "soft/iwarp/transfer/zerocopy.h"

#define LEAST IW_ZEROCOPY_LEAST
#define NEVER UINT_MAX
#define PARTS 512u

/* --- what the kernel is asked --- */

static _Atomic bool is_made_up; /* the test makes up the notices; the payloads are copied */
static _Atomic int held;	/* TCP takes nothing, with that error; 0: it does */
static _Atomic int refusal;	/* the error of each try; 0: none */
static _Atomic unsigned calls;	/* of sendmsg with MSG_ZEROCOPY, that took something */
static _Atomic unsigned tries;	/* all of them */

/* Headers and trailers that the kernel would read later. */
static struct part {
	const uint8_t *at;
	size_t size;
	uint8_t bytes[32];
} parts[PARTS];
static unsigned part_count;

static void keep_parts(const struct msghdr *message)
{
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *iov = &message->msg_iov[i];

		if (iov->iov_len > sizeof(parts[0].bytes))
			continue;
		assert_true(part_count < PARTS);
		parts[part_count].at = iov->iov_base;
		parts[part_count].size = iov->iov_len;
		memcpy(parts[part_count++].bytes, iov->iov_base, iov->iov_len);
	}
}

static void expect_parts_kept(void)
{
	assert_true(part_count > 0);
	for (unsigned i = 0; i < part_count; i++)
		assert_memory_equal(parts[i].at, parts[i].bytes, parts[i].size);
}

ssize_t __real_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent;

	if (atomic_load(&held)) {
		errno = atomic_load(&held);
		return -1;
	}
	if (!(flags & MSG_ZEROCOPY))
		return __real_iw_socket_sendmsg(fd, message, flags);
	atomic_fetch_add(&tries, 1);
	if (atomic_load(&refusal)) {
		errno = atomic_load(&refusal);
		return -1;
	}
	if (atomic_load(&is_made_up))
		flags &= ~MSG_ZEROCOPY;
	keep_parts(message);
	sent = __real_iw_socket_sendmsg(fd, message, flags);
	if (sent > 0)
		atomic_fetch_add(&calls, 1);
	return sent;
}

int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);

/* What is made up needs no such kernel. */
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	if (level == SOL_SOCKET && option == SO_ZEROCOPY && atomic_load(&is_made_up))
		return 0;
	return __real_setsockopt(fd, level, option, value, size);
}

static bool has_zerocopy(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
	bool has = !__real_setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes));

	close(fd);
	return has;
}

#define NEED_ZEROCOPY() ABILITY_NEED(has_zerocopy(), "no SO_ZEROCOPY")

/* --- what it tells --- */

static struct sock_extended_err notices[8];
static _Atomic unsigned notice_count; /* those that were put */
static _Atomic unsigned notice_next;  /* the next that is read */
static _Atomic unsigned reads_before; /* so many reads find nothing yet; NEVER: all */
static _Atomic unsigned reads;
static sem_t has_read; /* unless it was posted already */

static void put_notice(unsigned from, unsigned to, uint8_t code)
{
	unsigned at = atomic_load(&notice_count);

	assert_true(at < COUNT_OF(notices));
	notices[at] = (struct sock_extended_err){.ee_origin = SO_EE_ORIGIN_ZEROCOPY,
						 .ee_code = code,
						 .ee_info = from,
						 .ee_data = to};
	atomic_store(&notice_count, at + 1);
}

/* The pages of all calls so far are given back. */
static void give_back(void)
{
	put_notice(0, atomic_load(&calls) - 1, 0);
}

ssize_t __real_iw_socket_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_recvmsg(int fd, struct msghdr *message, int flags);

static bool is_notice_due(void)
{
	unsigned before = atomic_load(&reads_before);

	if (before && before != NEVER)
		atomic_store(&reads_before, before - 1);
	return !before && atomic_load(&notice_next) < atomic_load(&notice_count);
}

ssize_t __wrap_iw_socket_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct cmsghdr *part;
	int value;

	if (flags & MSG_ERRQUEUE) {
		atomic_fetch_add(&reads, 1);
		if (!sem_getvalue(&has_read, &value) && !value)
			sem_post(&has_read);
	}
	if (!(flags & MSG_ERRQUEUE) || !atomic_load(&is_made_up))
		return __real_iw_socket_recvmsg(fd, message, flags);
	if (!is_notice_due()) {
		errno = EAGAIN;
		return -1;
	}
	part = CMSG_FIRSTHDR(message);
	part->cmsg_level = SOL_IP;
	part->cmsg_type = IP_RECVERR;
	part->cmsg_len = CMSG_LEN(sizeof(notices[0]));
	memcpy(CMSG_DATA(part), &notices[atomic_fetch_add(&notice_next, 1)], sizeof(notices[0]));
	message->msg_controllen = CMSG_SPACE(sizeof(notices[0]));
	return 0;
}

int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
		 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
		 const sigset_t *mask);

/* No notice that is made up wakes a thread. */
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
		 const sigset_t *mask)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	bool is_long = time->tv_sec || time->tv_nsec > moment.tv_nsec;

	if (atomic_load(&is_made_up) && is_long)
		time = &moment;
	return __real_ppoll(fds, count, time, mask);
}

/* --- resets --- */

static _Atomic unsigned resets;

int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	if (address->sa_family == AF_UNSPEC)
		atomic_fetch_add(&resets, 1);
	return __real_connect(fd, address, size);
}

/* --- the stage --- */

static int provide_zerocopy(void **state)
{
	add_adapter("always", "127.0.0.1 transport=tcp zerocopy=on peer_timeout_ms=500");
	add_adapter("patient", "127.0.0.1 transport=tcp zerocopy=on");
	add_adapter("never", "127.0.0.1 transport=tcp zerocopy=off");
	return provide(state);
}

static void begin(bool makes_up)
{
	atomic_store(&is_made_up, makes_up);
	atomic_store(&held, 0);
	atomic_store(&refusal, 0);
	atomic_store(&calls, 0);
	atomic_store(&tries, 0);
	part_count = 0;
	atomic_store(&notice_count, 0);
	atomic_store(&notice_next, 0);
	atomic_store(&reads_before, 0);
	atomic_store(&reads, 0);
	atomic_store(&resets, 0);
	assert_int_equal(sem_init(&has_read, 0, 0), 0);
}

static void open_on(const char *adapter, bool makes_up)
{
	begin(makes_up);
	if (adapter)
		(void)open_adapter(adapter);
	else
		(void)open_stage(NULL);
	register_region();
}

static int open_made_up(void **state)
{
	(void)state;
	open_on("always", true);
	return 0;
}

static int open_real(void **state)
{
	(void)state;
	open_on("always", false);
	return 0;
}

/* The peer is one of ours. */
static void be_linked(void)
{
	be_called_by_own(0);
	put(flow.fd, rtr_write, sizeof(rtr_write));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	make_pattern(flow.region, REGION);
}

/* The connection, with its endpoint locked until leave(). */
static struct iw_conn *enter(void)
{
	struct core_ep *ep = core_ep_enter(core_handle_ref((struct core_handle *)flow.ep));

	assert_non_null(ep);
	return iw_conn_of(ep);
}

static void leave(void)
{
	core_ep_leave(((struct core_handle *)flow.ep)->object);
}

/* Takes a message or RDMA Write that begins at that offset of the region. */
static void take(size_t offset, size_t size)
{
	struct taken taken;
	size_t at = 0;

	do {
		get_fpdu(&taken);
		if (taken.ddp.is_tagged && !taken.size)
			continue; /* announces it */
		for (size_t i = 0; i < taken.size; i++)
			if (taken.payload[i] != pattern(offset + at + i))
				fail_msg("byte %zu is wrong", at + i);
		at += taken.size;
	} while (at < size);
	assert_int_equal(at, size);
	assert_true(taken.ddp.is_last);
}

/* The library looks at the connection. */
static void look(void)
{
	peer_write(0, 0, NULL, 0);
	expect_served();
}

static void end_linked(void)
{
	fill_memory();
	hang_up();
}

/* --- completions --- */

/* RDMAP-32 DTO-09: the peer has read the message, and the kernel could still send it again */
static void send__peer_has_it__completes_with_the_notice(void **state)
{
	(void)state;
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	look();
	expect_quiet(stage.evd);
	assert_true(atomic_load(&calls) > 0);
	give_back();
	look();
	expect_dto(0, DAT_DTO_SUCCESS, LEAST);
	end_linked();
}

/* EVD-DEQUEUE-01 RDMAP-32: a thread that polls takes the notices, on the fast path, too */
static void send__connection_is_polled__completes_in_a_dequeue(void **state)
{
	struct iw_conn *conn;
	DAT_EVENT event;

	(void)state;
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	look();
	conn = enter();
	iw_engine_add_polled(conn->engine, conn);
	leave();
	for (unsigned i = 0; i < 3; i++)
		expect_quiet(stage.evd);
	give_back();
	ok(core_evd_dequeue(stage.evd, &event));
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	end_linked();
}

/* The peer answers the question for the Write behind which it came. */
static void answer(void)
{
	struct taken taken;

	get_fpdu(&taken);
	assert_int_equal(taken.ddp.stag, 2);
	peer_write(3, taken.ddp.offset, NULL, 0);
	expect_served();
}

/* RDMAP-32 COMPAT-41: a proof and a notice, in either order */
static void write__proof_and_notice__completes_with_the_later(void **state)
{
	(void)state;
	be_linked();
	post_write_at(0, LEAST, 7, 4096, 0);
	take(0, LEAST);
	answer();
	look();
	expect_quiet(stage.evd);
	give_back();
	look();
	expect_dto(0, DAT_DTO_SUCCESS, LEAST);
	post_write_at(8, LEAST, 7, 4096, 0);
	take(8, LEAST);
	give_back();
	look();
	expect_quiet(stage.evd);
	answer();
	expect_dto(8, DAT_DTO_SUCCESS, LEAST);
	end_linked();
}

/* RDMAP-32: what is behind it completes after it, though it was copied */
static void notices__any_order__requests_complete_in_theirs(void **state)
{
	unsigned end[3];

	(void)state;
	be_linked();
	for (unsigned i = 0; i < 3; i++) {
		post_send_at(i, LEAST, 0);
		take(i, LEAST);
		end[i] = atomic_load(&calls);
	}
	post_send_at(3, 10, 0);
	take(3, 10);
	put_notice(end[0], end[1] - 1, 0);
	put_notice(end[0], end[1] - 1, 0);   /* again */
	put_notice(end[2], end[2] + 100, 0); /* calls that were not made */
	put_notice(UINT_MAX, UINT_MAX, 0);
	look();
	expect_quiet(stage.evd);
	put_notice(0, end[0] - 1, 0);
	look();
	expect_dto(0, DAT_DTO_SUCCESS, LEAST);
	expect_dto(1, DAT_DTO_SUCCESS, LEAST);
	expect_quiet(stage.evd);
	put_notice(end[1], end[2] - 1, 0);
	look();
	expect_dto(2, DAT_DTO_SUCCESS, LEAST);
	expect_dto(3, DAT_DTO_SUCCESS, 10);
	for (unsigned i = 0; i < IW_FRAME_LISTS; i++) {
		assert_int_equal(enter()->stream.tx.zerocopy.in_use[i], 0);
		leave();
	}
	end_linked();
}

/* MPA-47 RDMAP-32: the kernel reads headers and trailers later, too */
static void send__many_not_given_back__headers_stay(void **state)
{
	unsigned before = 0;

	(void)state;
	be_linked();
	for (unsigned i = 0; i < 6; i++) {
		bool has_list = i < IW_FRAME_LISTS - 1;

		/* the second is announced: by bytes that are copied */
		post_send_at(i, i == 1 ? 3 * LEAST : LEAST, 0);
		take(i, i == 1 ? 3 * LEAST : LEAST);
		assert_int_equal(atomic_load(&calls) > before, has_list);
		before = atomic_load(&calls);
	}
	expect_parts_kept();
	give_back();
	look();
	for (unsigned i = 0; i < 6; i++)
		expect_dto(i, DAT_DTO_SUCCESS, i == 1 ? 3 * LEAST : LEAST);
	post_send_at(0, LEAST, 0); /* the lists are free again */
	take(0, LEAST);
	assert_true(atomic_load(&calls) > before);
	give_back();
	look();
	expect_dto(0, DAT_DTO_SUCCESS, LEAST);
	end_linked();
}

/* --- when it is used --- */

/* Is a message of that length sent without a copy? It arrives, and completes. */
static bool is_used_for(size_t size)
{
	unsigned before = atomic_load(&tries);

	post_send_at(0, size, 0);
	take(0, size);
	if (atomic_load(&calls)) {
		give_back();
		look();
	}
	expect_dto(0, DAT_DTO_SUCCESS, size);
	return atomic_load(&tries) > before;
}

static void send__small__copied(void **state)
{
	(void)state;
	be_linked();
	assert_false(is_used_for(LEAST - 1));
	assert_true(is_used_for(LEAST));
	end_linked();
}

/* It may lock no more memory, or the pages are of a device and can only be copied. */
static void send__kernel_refuses__copied_for_a_second(void **state)
{
	static const int errors[] = {ENOBUFS, EFAULT};

	(void)state;
	be_linked();
	for (unsigned i = 0; i < COUNT_OF(errors); i++) {
		atomic_store(&tries, 0);
		atomic_store(&refusal, errors[i]);
		assert_true(is_used_for(LEAST));
		assert_int_equal(atomic_load(&tries), 1);
		atomic_store(&refusal, 0);
		assert_false(is_used_for(LEAST));
		enter()->stream.tx.zerocopy.refused_until_ns -= IW_ZEROCOPY_REFUSED_NS;
		leave();
		assert_true(is_used_for(LEAST));
	}
	end_linked();
}

static void copied_anyway(void)
{
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	put_notice(0, atomic_load(&calls) - 1, SO_EE_CODE_ZEROCOPY_COPIED);
	look();
	expect_dto(0, DAT_DTO_SUCCESS, LEAST);
}

static void settings__auto__until_the_kernel_copies(void **state)
{
	(void)state;
	open_on(NULL, true);
	be_linked();
	assert_false(is_used_for(LEAST)); /* loopback */
	end_linked();
	atomic_store(&forced_mss, 1448); /* a device */
	be_linked();
	assert_true(is_used_for(LEAST));
	end_linked();
	begin(true);
	be_linked();
	copied_anyway();
	assert_false(is_used_for(LEAST));
	end_linked();
	atomic_store(&forced_mss, 0);
	close_stage(state);
}

static void settings__on__though_the_kernel_copies(void **state)
{
	(void)state;
	be_linked();
	copied_anyway();
	assert_true(is_used_for(LEAST));
	end_linked();
}

static void settings__off__never(void **state)
{
	(void)state;
	open_on("never", true);
	be_linked();
	assert_false(is_used_for(LEAST));
	end_linked();
	close_stage(state);
}

/* --- dat_lmr_free --- */

static DAT_LMR_HANDLE doomed; /* another region, behind 2 * LEAST */
static DAT_LMR_CONTEXT doomed_key;

static void register_doomed(void)
{
	DAT_REGION_DESCRIPTION region = {.for_va = flow.region + 2 * LEAST};

	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, LEAST, stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &doomed, &doomed_key, NULL, NULL, NULL));
}

static void post_doomed(DAT_UINT64 cookie)
{
	DAT_LMR_TRIPLET segment = segment_at(2 * LEAST, LEAST);

	segment.lmr_context = doomed_key;
	ok(core_ep_post_send(flow.ep, 1, &segment, (DAT_DTO_COOKIE){.as_64 = cookie}, 0));
}

/* LMR-FREE-06: waits for the notice, unless only other memory is in use */
static void lmr_free__not_given_back__waits(void **state)
{
	(void)state;
	register_doomed();
	be_linked();
	post_send_at(LEAST, LEAST, 0);
	take(LEAST, LEAST);
	expect_served();
	atomic_store(&reads_before, NEVER);
	ok(core_lmr_free(doomed));
	look();
	expect_quiet(stage.evd);
	give_back();
	atomic_store(&reads_before, 20);
	ok(core_lmr_free(flow.lmr));
	assert_int_equal(atomic_load(&reads_before), 0);
	expect_dto(LEAST, DAT_DTO_SUCCESS, LEAST);
	fill_memory();
	register_region();
	hang_up();
}

/* LMR-FREE-06 DTO-96: not for ever */
static void lmr_free__never_given_back__connection_breaks(void **state)
{
	(void)state;
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	expect_served();
	ok(core_lmr_free(flow.lmr));
	fill_memory();
	expect_dto(0, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_reset(flow.fd);
	register_region();
	end_flow();
}

/* LMR-FREE-06: what is done, or reads, sends nothing, though it is outstanding */
static void lmr_free__given_back_behind_a_read__waits_for_nothing(void **state)
{
	(void)state;
	be_linked();
	post_read_at(LEAST, 8, 7, 4096, 0);
	(void)get_read_request();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	give_back();
	look();
	register_doomed();
	post_doomed(1); /* not given back */
	take(2 * LEAST, LEAST);
	ok(core_lmr_free(flow.lmr));
	assert_false(enter()->is_lost);
	leave();
	register_region();
	give_back();
	ok(core_lmr_free(doomed));
	reset_peer();
	while (next_of(stage.evd).event_number != DAT_CONNECTION_EVENT_BROKEN)
		;
	end_flow();
}

static void *free_endpoint(void *argument)
{
	(void)argument;
	ok(core_ep_free(flow.ep));
	return NULL;
}

/* LMR-FREE-06: another thread waits already, and has made the handle invalid */
static void lmr_free__endpoint_is_being_freed__waits_with_it(void **state)
{
	struct pollfd end = {.events = POLLRDHUP};
	pthread_t thread;

	(void)state;
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	expect_served();
	end.fd = flow.fd;
	assert_int_equal(pthread_create(&thread, NULL, free_endpoint, NULL), 0);
	while (sem_wait(&has_read) < 0)
		;
	ok(core_lmr_free(flow.lmr));
	assert_int_equal(poll(&end, 1, 0), 1);
	assert_true(end.revents & POLLERR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	fill_memory();
	register_region();
	close(flow.fd);
}

/* --- the end --- */

/* EP-DISC-20: no reset where nothing is in use any more */
static void disconnect__given_back__ends_with_fin(void **state)
{
	(void)state;
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	look();
	give_back();
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_dto(0, DAT_DTO_SUCCESS, LEAST);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_end(flow.fd);
	assert_int_equal(atomic_load(&resets), 0);
	fill_memory();
	end_flow();
}

/* EP-DISC-40: it does not take the time limit for a stopped peer, which is 5 s */
static void disconnect__never_given_back__ends_soon(void **state)
{
	uint64_t begin_ms;

	(void)state;
	open_on("patient", true);
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	begin_ms = now_ms();
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_in_range(now_ms() - begin_ms, 0, 4000);
	assert_int_equal(atomic_load(&resets), 1);
	fill_memory();
	end_flow();
	close_stage(state);
}

/* EP-FREE-10: the kernel gives the pages back while the call waits: no reset, each time */
static void ep_free__given_back_soon__ends_with_fin(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(true);
		be_linked();
		post_send_at(0, LEAST, 0);
		expect_served();
		give_back();
		atomic_store(&reads_before, 5);
		ok(core_ep_free(flow.ep));
		assert_int_equal(atomic_load(&reads_before), 0);
		take(0, LEAST);
		expect_end(flow.fd);
		assert_int_equal(atomic_load(&resets), 0);
		close(flow.fd);
		fill_memory();
		ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL,
				  &stage.b));
	}
}

/* IWCM-32: no error of a call for the socket is taken for one of the consumer's memory */
static void send__access_denied__connection_breaks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		be_linked();
		atomic_store(&held, EACCES);
		post_send_at(0, i ? LEAST : 100, 0);
		expect_dto(0, DAT_DTO_ERR_TRANSPORT, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		atomic_store(&held, 0);
		fill_memory();
		end_flow();
	}
}

/* A message of 256 KiB that TCP has taken, and of which the peer has room for a part only. */
static void post_more_than_fits(void)
{
	const int room = 4 * REGION, little = 32768;

	NEED_ZEROCOPY();
	be_linked();
	assert_int_equal(setsockopt(enter()->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	leave();
	assert_int_equal(setsockopt(flow.fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	post_send_at(0, REGION, 0);
	expect_served();
	expect_quiet(stage.evd);
	assert_true(atomic_load(&calls) > 0);
}

/* The peer has room again, and takes it. */
static void take_late(void)
{
	const int room = 4 * REGION;

	assert_int_equal(setsockopt(flow.fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
	take(0, REGION);
}

/* RDMAP-32 DTO-09 */
static void kernel__peer_reads_late__completes_then(void **state)
{
	(void)state;
	post_more_than_fits();
	take_late();
	expect_dto(0, DAT_DTO_SUCCESS, REGION);
	end_linked();
}

/* DTO-09 RDMAP-32: the request fails when the kernel sends nothing of it any more */
static void kernel__disconnect_and_peer_reads_nothing__reset(void **state)
{
	uint8_t head[20 + 20 + 18 + 2], bytes[4096];
	size_t at = 0;
	ssize_t count;

	(void)state;
	post_more_than_fits();
	ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	fill_memory();
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	/* what has come is of that time: an announcement, a header, and bytes of the message */
	get(flow.fd, head, 20 + 2 + 18);
	while ((count = recv(flow.fd, bytes, sizeof(bytes), 0)) > 0)
		for (ssize_t i = 0; i < count && at < 60000; i++, at++)
			assert_int_equal(bytes[i], pattern(at));
	assert_int_equal(count, -1);
	assert_int_equal(errno, ECONNRESET);
	end_flow();
}

/* IWCM-28: the event waits until the peer has read, which ends only its own direction */
static void kernel__fin_and_peer_reads_late__event_waits(void **state)
{
	(void)state;
	post_more_than_fits();
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect_served();
	expect_quiet(stage.evd);
	take_late();
	expect_dto(0, DAT_DTO_SUCCESS, REGION);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_end(flow.fd);
	fill_memory();
	end_flow();
}

/* A peer that never reads does not hold it up. */
static void kernel__fin_and_peer_reads_nothing__reset_after_a_while(void **state)
{
	(void)state;
	post_more_than_fits();
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	fill_memory();
	end_flow();
}

/* EP-DISC-20: both ends have to send before they would read */
static void kernel__both_ends_disconnect__neither_holds_up_the_other(void **state)
{
	unsigned ends = 0;

	(void)state;
	NEED_ZEROCOPY();
	connect_with(stage.qual, WAIT_US, NULL, 0);
	(void)take_request();
	accept_with(NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	for (unsigned i = 0; i < 16; i++) {
		flow.ep = i % 2 ? stage.a : stage.b;
		post_send_at(0, REGION, 0);
	}
	expect_served();
	ok(core_ep_disconnect(stage.a, DAT_CLOSE_ABRUPT_FLAG));
	ok(core_ep_disconnect(stage.b, DAT_CLOSE_ABRUPT_FLAG));
	while (ends < 2) {
		DAT_EVENT event = next_of(stage.evd);

		if (event.event_number == DAT_DTO_COMPLETION_EVENT)
			continue;
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
		ends++;
	}
	assert_int_equal(atomic_load(&resets), 0);
	ok(core_ep_reset(stage.a));
	ok(core_ep_reset(stage.b));
}

/* The socket is closed, which epoll reports all the time, and notices are missing: a look each
 * millisecond, no more. */
static void closing__peer_resets_and_nothing_given_back__few_looks(void **state)
{
	(void)state;
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect_served();
	reset_peer();
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_in_range(atomic_load(&reads), 1, 2000);
	fill_memory();
	end_flow();
}

/* RDMAP-32 DTO-09 TERM-10: a request that fails at once; the peer has refused the rest */
static void terminate__not_given_back__reset_before_the_completion(void **state)
{
	const uint8_t payload[4] = {0};

	(void)state;
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	peer_terminate(payload, sizeof(payload));
	expect_dto(0, DAT_DTO_ERR_REMOTE_RESPONDER, 0);
	assert_int_equal(atomic_load(&resets), 1);
	fill_memory();
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
}

/* --- a later request fails --- */

/* One message that the peer has and the kernel not given back, and one that has not begun. */
static void post_good_and_doomed(void)
{
	register_doomed();
	be_linked();
	post_send_at(0, LEAST, 0);
	take(0, LEAST);
	atomic_store(&held, EAGAIN);
	post_doomed(1);
}

/* TERM-15 DTO-96: what is given back succeeds, and the peer learns why the connection ends */
static void failure__given_back__terminate(void **state)
{
	(void)state;
	post_good_and_doomed();
	give_back();
	ok(core_lmr_free(doomed));
	atomic_store(&held, 0);
	expect_dto(0, DAT_DTO_SUCCESS, LEAST);
	expect_dto(1, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(0, 0, 0), NULL);
	fill_memory();
	end_flow();
}

/* RDMAP-32 DTO-96: nothing may be sent from memory of a request that has ended */
static void failure__not_given_back__reset(void **state)
{
	(void)state;
	post_good_and_doomed();
	ok(core_lmr_free(doomed));
	atomic_store(&held, 0);
	expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
	expect_dto(1, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_reset(flow.fd);
	fill_memory();
	end_flow();
}

#define MADE_UP(name) cmocka_unit_test_setup_teardown(name, open_made_up, close_stage)
#define REAL(name) cmocka_unit_test_setup_teardown(name, open_real, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MADE_UP(send__peer_has_it__completes_with_the_notice),
		MADE_UP(send__connection_is_polled__completes_in_a_dequeue),
		MADE_UP(write__proof_and_notice__completes_with_the_later),
		MADE_UP(notices__any_order__requests_complete_in_theirs),
		MADE_UP(send__many_not_given_back__headers_stay),
		MADE_UP(send__small__copied),
		MADE_UP(send__kernel_refuses__copied_for_a_second),
		cmocka_unit_test(settings__auto__until_the_kernel_copies),
		MADE_UP(settings__on__though_the_kernel_copies),
		cmocka_unit_test(settings__off__never),
		MADE_UP(lmr_free__not_given_back__waits),
		MADE_UP(lmr_free__never_given_back__connection_breaks),
		MADE_UP(lmr_free__given_back_behind_a_read__waits_for_nothing),
		MADE_UP(lmr_free__endpoint_is_being_freed__waits_with_it),
		MADE_UP(disconnect__given_back__ends_with_fin),
		cmocka_unit_test(disconnect__never_given_back__ends_soon),
		MADE_UP(ep_free__given_back_soon__ends_with_fin),
		MADE_UP(send__access_denied__connection_breaks),
		REAL(kernel__peer_reads_late__completes_then),
		REAL(kernel__disconnect_and_peer_reads_nothing__reset),
		REAL(kernel__fin_and_peer_reads_late__event_waits),
		REAL(kernel__fin_and_peer_reads_nothing__reset_after_a_while),
		REAL(kernel__both_ends_disconnect__neither_holds_up_the_other),
		MADE_UP(closing__peer_resets_and_nothing_given_back__few_looks),
		MADE_UP(terminate__not_given_back__reset_before_the_completion),
		MADE_UP(failure__given_back__terminate),
		MADE_UP(failure__not_given_back__reset),
	};

	return cmocka_run_group_tests(tests, provide_zerocopy, NULL);
}
