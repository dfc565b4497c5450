// SPDX-License-Identifier: BSD-2-Clause
/*
 * The whole provider on a system whose calls fail: copies, and what shows only without faults.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include "../../../lib/ability.h"
#include "faults_scene.h"
#include "faults_stage.h"
#include "core/base/clock.h"
#include "soft/shm/engine/engine.h"
#include "soft/soft.h"

static void bytes_move_later(bool is_done)
{
	assert_true(is_done);
	move_bytes();
}

static void attempt_moves_bytes(bool is_done)
{
	assert_true(is_done);
	assert_true(attempt_ends());
	stage_memory();
	move_bytes();
}

static const struct fault copy_faults[] = {
	{"process_vm_readv", EPERM},   {"process_vm_readv", ENOSYS}, {"process_vm_writev", EPERM},
	{"process_vm_writev", ENOSYS}, {"mmap64", ENOMEM},	     {"mmap64", EACCES},
	{"madvise", EAGAIN},
};

/* EP-RDMAW-01 EP-RDMAR-01: if one copy path is refused, another one is used. */
static void rdma__a_way_of_copying_fails__bytes_arrive(void **state)
{
	static const struct scene by_caller = {stage_connected, move_bytes, bytes_move_later,
					       FAULT_CALLER};
	static const struct scene by_service = {stage_connected, move_bytes, bytes_move_later,
						FAULT_OTHERS};

	(void)state;
	play_some(&by_caller, copy_faults, COUNT(copy_faults), 3);
	play_some(&by_service, copy_faults, COUNT(copy_faults), 3);
}

int __real_fstatfs64(int fd, struct statfs *info);
int __wrap_fstatfs64(int fd, struct statfs *info);
int __wrap_fstatfs64(int fd, struct statfs *info)
{
	return fault_hits("fstatfs64") ? -1 : __real_fstatfs64(fd, info);
}

/* A key table that cannot be checked gives no direct access, to either side. */
static void connect__key_table_refused__bytes_arrive(void **state)
{
	static const struct fault faults[] = {{"fstatfs64", ENOMEM}};
	static const struct scene scene = {stage_request, accept_b, attempt_moves_bytes,
					   FAULT_OTHERS};

	(void)state;
	play_some(&scene, faults, COUNT(faults), 3);
}

#define PART (LENGTH / 4)

/*
 * Two messages of two segments each, posted before their Receives, so that the sender cannot place
 * them. The receiver fetches each segment by one copy.
 */
static void send_parts(void)
{
	DAT_DTO_COOKIE cookie = {.as_64 = 3};

	fill_source();
	for (unsigned i = 0; i < 2; i++) {
		DAT_LMR_TRIPLET from[2] = {half(0), half(0)};

		from[0].virtual_address += i * 2 * PART;
		from[0].segment_length = PART;
		from[1].virtual_address += (i * 2 + 1) * PART;
		from[1].segment_length = PART;
		ok(core_ep_post_send(stage.a.ep, 2, from, cookie, 0));
	}
	for (unsigned i = 0; i < 2; i++) {
		DAT_LMR_TRIPLET to = half(1);

		to.virtual_address += i * 2 * PART;
		to.segment_length = 2 * PART;
		ok(core_ep_post_recv(stage.b.ep, 1, &to, cookie, 0));
	}
	expect_completions(4);
	check_target();
}

/*
 * DTO-123: the kernel does not let the receiver read any more, from any segment on. All bytes
 * arrive, also of the messages that are on their way.
 */
static void send__fetching_is_refused_after_the_set_up__bytes_arrive(void **state)
{
	static const int errors[] = {EPERM, ENOSYS, ENOMEM, EAGAIN, ESRCH};

	(void)state;
	ABILITY_NEED_VM_CALLS();
	for (size_t i = 0; i < COUNT(errors); i++) {
		for (int nth = 1; nth <= 4; nth++) {
			stage_connected();
			fault_arm("process_vm_readv", nth, errors[i], FAULT_ANY);
			send_parts();
			assert_true(fault_disarm());
			send_parts();
			send_once();
			rdma_once(true);
			stage_close();
		}
	}
}

/*
 * The kernel checks for a packet, then for the end of the socket: a peer that sends CLOSE and
 * closes between the two is not dead.
 */
static void disconnect__socket_seems_to_end_before_the_last_packet__disconnected(void **state)
{
	(void)state;
	stage_connected();
	fault_arm("recvmsg", 1, 0, FAULT_ANY);
	ok(core_ep_disconnect(stage.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (int sides = 0; sides < 2; sides++)
		assert_int_equal(next_event().event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(fault_disarm());
	stage_close();
}

/* --- without faults: what only the inside shows --- */

static void count_paths(uint64_t *counters_out)
{
	soft_counters(((struct core_handle *)stage.ia)->object, counters_out);
}

/* The setting decides which copy path the bytes take. */
static void rdma__copy_path_set__takes_that_path(void **state)
{
	static const struct {
		const char *setting;
		enum shm_counter taken;
		enum shm_counter not_taken[2];
	} paths[] = {
		/* until the memory is mapped, another path is used */
		{"map", SHM_COUNT_MAP, {SHM_COUNT_END, SHM_COUNT_END}},
		{"cma", SHM_COUNT_CMA, {SHM_COUNT_MAP, SHM_COUNT_RING}},
		{"ring", SHM_COUNT_RING, {SHM_COUNT_MAP, SHM_COUNT_CMA}},
	};
	uint64_t counters[SHM_COUNT_END + 1] = {0}, end;

	(void)state;
	for (size_t i = 0; i < COUNT(paths); i++) {
		if (paths[i].taken == SHM_COUNT_CMA && !ability_vm_calls())
			continue;
		assert_int_equal(setenv("DAT_COPY", paths[i].setting, 1), 0);
		stage_connected();
		end = core_now_ns() + WAIT_US * UINT64_C(1000);
		do { /* memory is mapped some time after the first use */
			move_bytes();
			count_paths(counters);
		} while (!counters[paths[i].taken] && core_now_ns() < end);
		stage_close();
		assert_true(counters[paths[i].taken] > 0);
		assert_int_equal(counters[paths[i].not_taken[0]], 0);
		assert_int_equal(counters[paths[i].not_taken[1]], 0);
	}
	assert_int_equal(unsetenv("DAT_COPY"), 0);
}

/* The same on an adapter with an IPv6 address, which the request contains. */
static void connection__ipv6_address__bytes_move(void **state)
{
	DAT_PROVIDER_INFO info = {.ia_name = "six", .is_thread_safe = DAT_TRUE};
	DAT_CR_PARAM param;

	(void)state;
	dat_provider_init(&info, "::1");
	if (core_ia_open_safe((DAT_NAME_PTR) "six", 8, &(DAT_EVD_HANDLE){DAT_HANDLE_NULL},
			      &stage.ia) != DAT_SUCCESS) {
		print_message("no IPv6 here\n");
		skip();
	}
	ok(core_ia_close(stage.ia, DAT_CLOSE_ABRUPT_FLAG));
	adapter = "six";
	stage_request();
	ok(core_cr_query(stage.cr, DAT_CR_FIELD_ALL, &param));
	assert_int_equal(param.remote_ia_address_ptr->sa_family, AF_INET6);
	assert_true(IN6_IS_ADDR_LOOPBACK(
		&((struct sockaddr_in6 *)param.remote_ia_address_ptr)->sin6_addr));
	ok(accept_b());
	assert_true(attempt_ends());
	stage_memory();
	move_bytes();
	send_once();
	stage_close();
	adapter = "faulty";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rdma__a_way_of_copying_fails__bytes_arrive),
		cmocka_unit_test(connect__key_table_refused__bytes_arrive),
		cmocka_unit_test(send__fetching_is_refused_after_the_set_up__bytes_arrive),
		cmocka_unit_test(
			disconnect__socket_seems_to_end_before_the_last_packet__disconnected),
		cmocka_unit_test(rdma__copy_path_set__takes_that_path),
		cmocka_unit_test(connection__ipv6_address__bytes_move),
	};

	return cmocka_run_group_tests(tests, warm_up, NULL);
}
