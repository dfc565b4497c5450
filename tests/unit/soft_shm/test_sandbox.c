// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel that refuses to copy for us. A thread of the library cannot store into mapped memory of
 * the peer then, in a way that a closed gate stops.
 */
#include <fcntl.h>
#include <string.h>

#include "../soft/sandbox.h"
#include "slow.h"
#include "core/base/slab.h"
#include "soft/copy.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/transfer/map.h"

#define LENGTH 8192u

static int setup_map(void **state)
{
	struct lab *lab = lab_open(CORE_COPY_MAP, false);

	lab->conn->remote.maps = core_slab_alloc(SHM_MAPS * sizeof(struct shm_map));
	assert_non_null(lab->conn->remote.maps);
	*state = lab;
	return 0;
}

/* The peer gives us the memory behind that key; returns the file. */
static int map_memory(struct lab *lab, uint32_t key, uint64_t address)
{
	struct shm_wire_give give = {.key = key, .address = address, .length = LENGTH};
	int fd = soft_fd_memfd("test", LENGTH);

	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_null(shm_map_find(lab->conn, key));
	shm_map_given(lab->conn, &give, fd);
	assert_non_null(shm_map_find(lab->conn, key));
	return fd;
}

/* LMR-FREE-21 LMR-USE-14 */
static void write__mapped_memory_in_a_thread_of_the_library__through_the_ring(void **state)
{
	const uint64_t address = 1u << 20;
	struct lab *lab = *state;
	uint8_t bytes[4];
	uint32_t key;
	int fd;

	assert_int_equal(
		soft_keys_add(lab->peer_keys, address, LENGTH, SOFT_RIGHT_REMOTE_WRITE, 9, &key),
		0);
	fd = map_memory(lab, key, address);
	memcpy(lab->memory, "ring", 4);
	soft_is_library_thread = true;
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, address));
	soft_is_library_thread = false;
	assert_true(lab_is_open(lab));
	assert_int_equal(shm_engine_count(&lab->engine, SHM_COUNT_RING), 1);
	assert_memory_equal(lab->conn->segment->request[SHM_PASSIVE] + SHM_ENTRY_ALIGN, "ring", 4);
	assert_int_equal(pread(fd, bytes, 4, 0), 4);
	assert_memory_equal(bytes, "\0\0\0", 4);
	soft_keys_invalidate(lab->peer_keys, key);
	soft_keys_release(lab->peer_keys, key);
	soft_fd_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			write__mapped_memory_in_a_thread_of_the_library__through_the_ring,
			setup_map, teardown),
	};

	if (refuse_process_vm())
		return 77; /* no filters are allowed here */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
