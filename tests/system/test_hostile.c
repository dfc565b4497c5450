// SPDX-License-Identifier: BSD-2-Clause
/*
 * A hostile peer sends garbage packets and garbage in the segment. It can break its own connection.
 * All other connections and all calls must keep working.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <dat/opendat.h>

#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/wire.h"
#include "descriptors.h"
#include "hostile.h"

/* Puts one inline Send into an unused ring, without a notification. */
static void hostile_put_send(struct hostile *h, uint32_t len)
{
	struct shm_entry entry = {
		.type = SHM_ENTRY_SEND,
		.flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
		.payload = len,
		.length = len,
	};
	const uint32_t at = h->produced;

	assert_int_equal(len % SHM_ENTRY_ALIGN, 0);
	entry.stamp = SHM_STAMP(at);
	h->produced += SHM_ENTRY_ALIGN + len;
	memcpy(h->segment->request[SHM_ACTIVE] + at % SHM_REQUEST_RING, &entry, sizeof(entry));
}

/* --- packets --- */

/* Makes a descriptor for the events of the EVD. Waiting on it does not drive the transport. */
static DAT_CNO_HANDLE cno_of(struct conn_fixture *f, DAT_EVD_HANDLE evd, int *fd_out)
{
	DAT_CNO_HANDLE cno;

	dt_ok(dat_cno_create(f->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_modify_cno(evd, cno));
	dt_ok(dat_opendat_cno_fd(cno, fd_out));
	return cno;
}

/* A WAKE does not fit into a full socket, so every packet wakes. */
static void cno_fd__any_packet_instead_of_wake__readable(void **state)
{
	static const enum shm_wire_type types[] = {SHM_WIRE_KEY_GONE, SHM_WIRE_MAP_ASK,
						   SHM_WIRE_MAP_REFUSE, SHM_WIRE_WAKE};
	struct conn_fixture *f = *state;
	struct pollfd event = {.events = POLLIN};
	struct hostile h;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;

	cno = cno_of(f, f->a.recv, &event.fd);
	hostile_connect(&h, f, &f->a);
	for (uint64_t i = 0; i < COUNT_OF(types); i++) {
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, i);
		while (!(atomic_load(&h.segment->side[SHM_PASSIVE].armed) & 1))
			usleep(1000);
		hostile_put_send(&h, 64);
		hostile_word(&h, types[i], 1);
		assert_int_equal(poll(&event, 1, DT_WAIT_US / 1000), 1);
		dt_ok(dat_cno_wait(cno, DT_WAIT_US, &evd));
		dt_expect_dto(f->a.recv, f->a.ep, i, DAT_DTO_SUCCESS, 64);
	}
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* --- descriptors exhausted --- */

static void post_write(struct conn_fixture *f, uint32_t key, const void *to, uint64_t cookie)
{
	DAT_RMR_TRIPLET remote = {
		.rmr_context = key, .target_address = (uintptr_t)to, .segment_length = 64};
	DAT_LMR_TRIPLET local = dt_seg(&f->buf, 0, 64);

	dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &local, dt_cookie(cookie), &remote,
				     DAT_COMPLETION_DEFAULT_FLAG));
	dt_expect_dto(f->a.request, f->a.ep, cookie, DAT_DTO_SUCCESS, 64);
}

/* Without a descriptor the connection stays, and the copy takes another path than the mapping. */
static void rdma_write__no_descriptor_for_the_mapping__done_otherwise(void **state)
{
	struct conn_fixture *f = *state;
	const int file = sealed_file(4096);
	struct shm_wire_give give = {.key = 5u, .length = 4096};
	struct rlimit limit, none;
	union shm_wire packet;
	struct hostile h;
	void *memory = map_file(file, 4096);

	hostile_connect(&h, f, &f->a);
	h.table[5].rights = SOFT_RIGHT_REMOTE_WRITE;
	h.table[5].address = (uintptr_t)memory;
	h.table[5].length = 4096;
	atomic_store(&h.table[5].key, 5);
	post_write(f, 5, memory, 1);
	hostile_await(&h, SHM_WIRE_MAP_ASK, &packet);
	put_head(&give.head, SHM_WIRE_MAP_GIVE);
	give.address = (uintptr_t)memory;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	hostile_send(&h, &give, sizeof(give), &file, 1);
	/* sent after it: when this has arrived, the other was handled */
	conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, 7);
	hostile_put_send(&h, 64);
	hostile_word(&h, SHM_WIRE_WAKE, 0);
	dt_expect_dto(f->a.recv, f->a.ep, 7, DAT_DTO_SUCCESS, 64);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	dt_no_event(f->a.conn);
	post_write(f, 5, memory, 2);
	hostile_close(&h);
	munmap(memory, 4096);
	close(file);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* --- noise --- */

static uint32_t noise(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void make_noise(struct hostile *h)
{
	uint32_t *words = (uint32_t *)(void *)h->mine;
	uint8_t *ring = h->segment->request[SHM_ACTIVE];
	union shm_wire packet;

	memset(&packet, 0, sizeof(packet));
	for (unsigned int i = 0; i < 64; i++) {
		if (noise() & 1)
			ring[noise() % 512] = (uint8_t)(noise() % 8);
		if (!(noise() % 8))
			words[noise() % (sizeof(*h->mine) / 4)] =
				noise() % 3 ? noise() & 0x1ff : noise();
		if (!(noise() % 4))
			hostile_put_send(h, 32 * (noise() % 4));
		if (noise() % 8)
			continue;
		put_head(&packet.head, (enum shm_wire_type)(noise() % (SHM_WIRE_TYPE_END + 1)));
		packet.word.word = noise() & 0xff;
		hostile_send(h, &packet,
			     packet.head.type == SHM_WIRE_WAKE	     ? sizeof(packet.head)
			     : packet.head.type == SHM_WIRE_MAP_GIVE ? sizeof(packet.give)
								     : sizeof(packet.word),
			     NULL, 0);
	}
}

static bool has_descriptors(void *arg)
{
	return count_descriptors() <= *(unsigned int *)arg;
}

/* CONN-GEN-09: Nothing remains of the connections, and others are not affected. */
static void connection__noise_in_segment_and_socket__ends_alone(void **state)
{
	struct conn_fixture *f = *state;
	unsigned int before;
	DAT_EVENT event;

	check_others_work(f);
	before = count_descriptors();
	for (unsigned int i = 0; i < 300; i++) {
		struct hostile h;

		hostile_connect(&h, f, &f->a);
		conn_post_recv(f->a.ep, &f->buf, CONN_A_RECEIVES_AT, i);
		conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, i);
		make_noise(&h);
		atomic_store(&h.mine->announce, 0); /* test_hostile_pins.c tests its time-out */
		hostile_close(&h);
		do { /* until the final event of the connection */
			event = dt_event(f->a.conn);
		} while (dt_ep_state(f->a.ep) != DAT_EP_STATE_DISCONNECTED);
		assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
			    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
		dt_drain(f->a.recv);
		dt_drain(f->a.request);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	dt_until(has_descriptors, &before);
	check_others_work(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(cno_fd__any_packet_instead_of_wake__readable),
		conn_test(connection__noise_in_segment_and_socket__ends_alone),
		cmocka_unit_test_setup_teardown(
			rdma_write__no_descriptor_for_the_mapping__done_otherwise, map_setup,
			map_teardown),
	};

	return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
