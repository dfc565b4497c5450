// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel refuses to copy between two processes after they have connected: a daemon gives up
 * its user, a sandbox closes, a process makes itself undumpable. All transfers go on. Each scene
 * runs in processes of its own, because none of this can be undone.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ability.h"
#include "conf.h"
#include "dto_util.h"
#include "log_util.h"
#include "old_kernel.h"

#define LARGE (2560u * 1024u) /* several pieces of each kind of copy */
#define RDMA_AT LARGE	      /* behind it: the target of Writes, the source of Reads */
#define ROOM (2 * LARGE)
#define STRANGER 54321u /* a user; need not exist */

/* The first one begins before the kernel refuses in the middle. */
static const size_t lengths[] = {LARGE, 4097, 8, 100000, 4096, 5000};

#define MESSAGES COUNT_OF(lengths)

/* --- how the right to copy is lost --- */

enum side { RECEIVER, SENDER };

struct loss {
	void (*before)(enum side side, int error); /* the adapter is opened; may be NULL */
	void (*after)(enum side side, int error);  /* the first transfers; may be NULL */
	int error;
};

static void refuse_all(enum side side, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	(void)side;
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program),
		0);
}

/* Copies to or from two segments here: those that come to the boundary of the segments. */
static void refuse_two_segments(enum side side, int error)
{
	(void)side;
	old_kernel_refuse(SYS_process_vm_readv, 2, 2, (uint32_t)error);
	old_kernel_refuse(SYS_process_vm_writev, 2, 2, (uint32_t)error);
}

static void refuse_at_receiver(enum side side, int error)
{
	if (side == RECEIVER)
		refuse_all(side, error);
}

static void refuse_at_sender(enum side side, int error)
{
	if (side == SENDER)
		refuse_all(side, error);
}

/* Without privileges only a dumpable process can be read. */
static void give_up_privileges(enum side side, int error)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {{0}};

	(void)side;
	(void)error;
	assert_int_equal(syscall(SYS_capset, &head, none), 0);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

static void become_undumpable(enum side side, int error)
{
	(void)error;
	if (side == SENDER)
		assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
}

static void change_user(enum side side, int error)
{
	(void)error;
	if (side == SENDER)
		return;
	assert_int_equal(setresgid(STRANGER, STRANGER, STRANGER), 0);
	assert_int_equal(setresuid(STRANGER, STRANGER, STRANGER), 0);
}

/* --- the two processes --- */

struct end {
	struct dt_peer *other;
	struct dt_ia ia;
	struct dt_listener listener; /* of the receiver */
	struct dt_ep ep;
	struct dt_buf buf;
	DAT_CONN_QUAL qual;  /* of the listener */
	DAT_RMR_TRIPLET far; /* the other one's buffer */
	const struct loss *loss;
};

/* In two segments, the second of which begins in the middle of a piece. */
static void cut(const struct dt_buf *buf, size_t offset, size_t len, DAT_LMR_TRIPLET seg_out[2])
{
	const size_t first = len / 2 + 3;

	seg_out[0] = dt_seg(buf, offset, first);
	seg_out[1] = dt_seg(buf, offset + first, len - first);
}

static void open_end(struct end *end, enum side side)
{
	DAT_RMR_TRIPLET all;

	dt_ia_open(&end->ia);
	dt_buf_create(&end->ia, end->ia.pz, &end->buf, ROOM, DAT_MEM_PRIV_ALL_FLAG);
	all = dt_rseg(&end->buf, RDMA_AT, LARGE);
	dt_ep_create(&end->ia, end->ia.pz, NULL, &end->ep);
	if (side == RECEIVER) {
		dt_listen(&end->ia, &end->listener);
		end->qual = end->listener.qual;
		dt_peer_send(end->other, &end->qual, sizeof(end->qual));
	} else {
		dt_peer_recv(end->other, &end->qual, sizeof(end->qual));
	}
	dt_peer_send(end->other, &all, sizeof(all));
	dt_peer_recv(end->other, &end->far, sizeof(end->far));
}

static void connect_end(struct end *end, enum side side)
{
	if (side == SENDER)
		dt_connect(&end->ia, end->ep.ep, end->qual);
	else
		dt_ok(dat_cr_accept(dt_request(&end->listener), end->ep.ep, 0, NULL));
	dt_expect_conn(end->ep.conn, end->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* The sender disconnects, and both make a new endpoint. */
static void connect_anew(struct end *end, enum side side)
{
	if (side == SENDER)
		dt_ok(dat_ep_disconnect(end->ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(end->ep.conn, end->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&end->ep);
	dt_ep_create(&end->ia, end->ia.pz, NULL, &end->ep);
	connect_end(end, side);
}

/* All messages are posted before the first one is taken. */
static void receive_messages(struct end *end, uint32_t seed)
{
	size_t at = 0, total = 0;

	for (size_t i = 0; i < MESSAGES; i++)
		total += lengths[i];
	assert_true(total <= ROOM);
	memset(end->buf.p, 0, total);
	for (size_t i = 0; i < MESSAGES; at += lengths[i++]) {
		DAT_LMR_TRIPLET seg[2];

		cut(&end->buf, at, lengths[i], seg);
		dt_ok(dat_ep_post_recv(end->ep.ep, 2, seg, dt_cookie(i), 0));
	}
	dt_peer_sync(end->other);
	at = 0;
	for (size_t i = 0; i < MESSAGES; at += lengths[i++]) {
		dt_expect_dto(end->ep.recv, end->ep.ep, i, DAT_DTO_SUCCESS, lengths[i]);
		dt_check_pattern(end->buf.p + at, lengths[i], seed + (uint32_t)i);
	}
	dt_peer_sync(end->other);
}

static void send_messages(struct end *end, uint32_t seed)
{
	size_t at = 0;

	for (size_t i = 0; i < MESSAGES; at += lengths[i++])
		dt_fill(end->buf.p + at, lengths[i], seed + (uint32_t)i);
	dt_peer_sync(end->other);
	at = 0;
	for (size_t i = 0; i < MESSAGES; at += lengths[i++]) {
		DAT_LMR_TRIPLET seg = dt_seg(&end->buf, at, lengths[i]);

		dt_ok(dat_ep_post_send(end->ep.ep, 1, &seg, dt_cookie(i), 0));
	}
	for (size_t i = 0; i < MESSAGES; i++)
		dt_expect_dto(end->ep.request, end->ep.ep, i, DAT_DTO_SUCCESS, lengths[i]);
	dt_peer_sync(end->other);
}

/* A Write, a Read of the same bytes, and the other side looks at them. */
static void write_and_read(struct end *end, uint32_t seed)
{
	DAT_LMR_TRIPLET seg[2];

	cut(&end->buf, 0, LARGE, seg);
	dt_fill(end->buf.p, LARGE, seed);
	dt_ok(dat_ep_post_rdma_write(end->ep.ep, 2, seg, dt_cookie(1), &end->far, 0));
	dt_expect_dto(end->ep.request, end->ep.ep, 1, DAT_DTO_SUCCESS, LARGE);
	memset(end->buf.p, 0, LARGE);
	dt_ok(dat_ep_post_rdma_read(end->ep.ep, 2, seg, dt_cookie(2), &end->far, 0));
	dt_expect_dto(end->ep.request, end->ep.ep, 2, DAT_DTO_SUCCESS, LARGE);
	dt_check_pattern(end->buf.p, LARGE, seed);
	dt_peer_sync(end->other);
	dt_peer_sync(end->other);
}

static void look(struct end *end, uint32_t seed)
{
	dt_peer_sync(end->other);
	/* the call orders the stores of the library's thread before our loads */
	assert_int_equal(dt_ep_state(end->ep.ep), DAT_EP_STATE_CONNECTED);
	dt_check_pattern(end->buf.p + RDMA_AT, LARGE, seed);
	dt_peer_sync(end->other);
}

/* Everything, in both directions. */
static void transfer_all(struct end *end, enum side side, uint32_t seed)
{
	if (side == SENDER) {
		send_messages(end, seed);
		receive_messages(end, seed + 100);
		write_and_read(end, seed + 200);
		look(end, seed + 300);
	} else {
		receive_messages(end, seed);
		send_messages(end, seed + 100);
		look(end, seed + 200);
		write_and_read(end, seed + 300);
	}
}

static unsigned count_lines(const char *log)
{
	unsigned count = 0;

	while ((log = strstr(log, "the kernel does not copy"))) {
		count++;
		log++;
	}
	return count;
}

static void run_end(struct end *end, enum side side)
{
	const struct loss *loss = end->loss;
	const char *copy = getenv("DAT_COPY");
	unsigned lines;

	log_capture_start();
	setenv("DAT_DBG_TYPE", "33", 1); /* errors, and copy paths */
	if (loss->before)
		loss->before(side, loss->error);
	open_end(end, side);
	connect_end(end, side);
	if (loss->after) {
		transfer_all(end, side, 1000);
		loss->after(side, loss->error);
		dt_peer_sync(end->other);
	}
	log_begin();
	transfer_all(end, side, 2000);
	transfer_all(end, side, 3000);
	lines = count_lines(log_end());
	/* once, if at all: it depends on the side, and mapped memory needs no kernel */
	assert_in_range(lines, 0, 1);
	if (side == RECEIVER && copy && !strcmp(copy, "cma") && loss->after != refuse_at_sender)
		assert_int_equal(lines, 1);
	connect_anew(end, side);
	transfer_all(end, side, 4000);
	dt_peer_sync(end->other);
	dt_ia_abort(&end->ia);
}

static void run_receiver(struct dt_peer *peer, void *arg)
{
	static struct end end;

	end.loss = arg;
	end.other = peer;
	run_end(&end, RECEIVER);
}

static void run_sender(struct dt_peer *peer, void *arg)
{
	static struct end end;
	struct dt_peer receiver;

	(void)peer;
	end.loss = arg;
	dt_peer_start(&receiver, run_receiver, arg);
	end.other = &receiver;
	run_end(&end, SENDER);
	dt_peer_join(&receiver);
}

static void check_loss(struct loss loss)
{
	struct dt_peer sender;

	ABILITY_NEED_VM_CALLS();
	dt_peer_start(&sender, run_sender, &loss);
	dt_peer_join(&sender);
}

/* DTO-123 EP-SEND-01 EP-RDMAW-01 EP-RDMAR-01 */
static void transfer__refused_at_the_receiver__all_arrives(void **state)
{
	(void)state;
	check_loss((struct loss){.after = refuse_at_receiver, .error = EPERM});
	check_loss((struct loss){.after = refuse_at_receiver, .error = ENOSYS});
	check_loss((struct loss){.after = refuse_at_receiver, .error = ENOMEM});
	check_loss((struct loss){.after = refuse_at_receiver, .error = EAGAIN});
}

/* DTO-123 */
static void transfer__refused_at_the_sender__all_arrives(void **state)
{
	(void)state;
	check_loss((struct loss){.after = refuse_at_sender, .error = EPERM});
}

/* DTO-123: the first pieces are copied, the next one is not. */
static void transfer__refused_in_the_middle__all_arrives(void **state)
{
	(void)state;
	check_loss((struct loss){.before = refuse_two_segments, .error = EPERM});
	check_loss((struct loss){.before = refuse_two_segments, .error = ENOMEM});
}

/* DTO-123 */
static void transfer__undumpable_process__all_arrives(void **state)
{
	(void)state;
	check_loss((struct loss){.before = give_up_privileges, .after = become_undumpable});
}

/* DTO-123 */
static void transfer__another_user__all_arrives(void **state)
{
	(void)state;
	ABILITY_NEED(geteuid() == 0, "needs root");
	check_loss((struct loss){.after = change_user});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfer__refused_at_the_receiver__all_arrives),
		cmocka_unit_test(transfer__refused_at_the_sender__all_arrives),
		cmocka_unit_test(transfer__refused_in_the_middle__all_arrives),
		cmocka_unit_test(transfer__undumpable_process__all_arrives),
		cmocka_unit_test(transfer__another_user__all_arrives),
	};

	return cmocka_run_group_tests_name("copy_refused", tests, NULL, NULL);
}
