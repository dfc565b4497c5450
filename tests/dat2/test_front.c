// SPDX-License-Identifier: BSD-2-Clause
/* What differs between DAT 2.0 and 1.2 in attributes, completions and rejections. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dat2/dat_ib_extensions.h>

#include "conn_util.h"
#include "dto_util.h"
#include "srq_util.h"

#undef dat_cr_reject

static DAT_DTO_COMPLETION_EVENT_DATA completion(DAT_EVD_HANDLE evd, unsigned int number,
						DAT_EVENT *event_out)
{
	memset(event_out, 0x5a, sizeof(*event_out));
	*event_out = dt_event(evd);
	assert_int_equal(event_out->event_number, number);
	return event_out->event_data.dto_completion_event_data;
}

/* The value of a named attribute of the adapter. */
static const char *named(const struct dt_ia *ia, const char *name)
{
	const DAT_PROVIDER_ATTR *provider = &ia->provider;

	for (DAT_COUNT i = 0; i < provider->num_provider_specific_attr; i++)
		if (!strcmp(provider->provider_specific_attr[i].name, name))
			return provider->provider_specific_attr[i].value;
	fail_msg("no attribute %s", name);
	return NULL;
}

static bool is_true(const struct rig *rig, const char *name)
{
	return !strcmp(named(&rig->ia, name), "TRUE");
}

/* D2-ATTR-17: an adapter says what it has, and refuses what it has not. True: it has none. */
static bool lacks_immediate(struct rig *rig)
{
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	if (is_true(rig, "DAT_IB_IMMED_DATA"))
		return false;
	dt_fails(dat_ib_post_rdma_write_immed(rig->a.ep, 1, &seg, dt_cookie(1), &remote, 1, 0),
		 DAT_MODEL_NOT_SUPPORTED);
	return true;
}

static bool lacks_atomics(struct rig *rig)
{
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	assert_int_equal(is_true(rig, "DAT_IB_FETCH_AND_ADD"), is_true(rig, "DAT_IB_CMP_AND_SWAP"));
	if (is_true(rig, "DAT_IB_FETCH_AND_ADD"))
		return false;
	dt_fails(dat_ib_post_fetch_and_add(rig->a.ep, 1, &seg, dt_cookie(1), &remote, 0),
		 DAT_MODEL_NOT_SUPPORTED);
	dt_fails(dat_ib_post_cmp_and_swap(rig->a.ep, 1, 2, &seg, dt_cookie(1), &remote, 0),
		 DAT_MODEL_NOT_SUPPORTED);
	return true;
}

static const DAT_IB_EXTENSION_EVENT_DATA *extension(const DAT_EVENT *event)
{
	return (const DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;
}

/* D2-IA-08 D2-IA-09 D2-IA-14 D2-IA-05 D2-ATTR-04 */
static void ia_query__fields_of_2__filled(void **state)
{
	struct rig *rig = *state;
	const DAT_PROVIDER_ATTR *provider = &rig->ia.provider;

	assert_int_equal(rig->ia.attr.extension_supported, DAT_EXTENSION_IB);
	assert_int_equal(rig->ia.attr.extension_version, 209);
	assert_int_equal(rig->ia.attr.max_lmr_block_size, 0xffffffff);
	assert_int_equal(provider->dapl_version_major, 2);
	assert_int_equal(provider->dapl_version_minor, 0);
	assert_int_equal(provider->ha_supported, DAT_FALSE);
	assert_true(is_true(rig, "DAT_IB_RDMA_READ"));
}

/* Groups of four lower-case hexadecimal digits with colons? */
static void check_groups(const char *value, size_t groups)
{
	assert_int_equal(strlen(value), groups * 5 - 1);
	for (size_t i = 0; value[i]; i++)
		assert_non_null(strchr(i % 5 == 4 ? ":" : "0123456789abcdef", value[i]));
}

/* The first line of that file of the virtual machine's device. */
static void check_file(const char *value, const char *device, const char *file)
{
	char path[128], line[64] = "";
	FILE *from;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, file);
	from = fopen(path, "re");
	assert_non_null(from);
	assert_non_null(fgets(line, sizeof(line), from));
	fclose(from);
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(value, line);
}

/* D2-ATTR-02 D2-ATTR-05 D2-ATTR-06 D2-ATTR-07 D2-ATTR-08 D2-ATTR-09 */
static void ia_query__port__told_by_name(void **state)
{
	static const char *const names[] = {"DAT_IB_DEVICE_NAME", "DAT_IB_NODE_GUID", "DAT_IB_GID",
					    "DAT_IB_TRANSPORT_MTU"};
	const struct rig *rig = *state;
	const char *device = getenv("RDMA_VM_DEV"), *found[4];
	bool is_fake = !strcmp(dt_adapter(), "verbs-fake");
	struct dt_ia other;

	dt_ia_open(&other);
	for (size_t i = 0; i < 4; i++) {
		found[i] = named(&rig->ia, names[i]);
		assert_string_equal(found[i], named(&other, names[i]));
	}
	dt_ia_close(&other);
	check_groups(found[1], 4);
	check_groups(found[2], 8);
	assert_string_equal(named(&rig->ia, "DAT_IB_PORT_STATUS"), "ACTIVE");
	assert_string_equal(named(&rig->ia, "DAT_IB_PORT_NUMBER"), "1");
	if (!dt_is_verbs()) {
		assert_string_equal(found[3], "4096");
	} else if (is_fake) {
		assert_string_equal(found[0], "fake0");
		assert_string_equal(found[1], "0001:0203:0405:06fe");
		assert_string_equal(found[2], "fe80:0000:0000:0000:0000:0000:0000:0100");
		assert_string_equal(found[3], "2048");
	} else if (device) {
		assert_string_equal(found[0], device);
		check_file(found[1], device, "node_guid");
		check_file(found[2], device, "ports/1/gids/0");
		assert_string_equal(found[3], "1024"); /* of an interface with 1500 */
	}
}

/* D2-DTO-07 D2-DTO-10 D2-DTO-13 D2-VRB-13 */
static void completions__each_kind__tell_the_operation(void **state)
{
	struct rig *rig = *state;
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_EVENT event;

	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 9);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 1, 0);
	data = completion(rig->a.request, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.operation, DAT_DTO_SEND);
	data = completion(rig->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.operation, DAT_DTO_RECEIVE);
	assert_int_equal(data.rmr_context, 0);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&rig->y, 0, 8), 2, 0);
	data = completion(rig->a.request, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.operation, DAT_DTO_RDMA_WRITE);
	post_read(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&rig->y, 0, 8), 3, 0);
	data = completion(rig->a.request, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.operation, DAT_DTO_RDMA_READ);
	assert_int_equal(data.transfered_length, 8);
}

/* D2-DTO-09 */
static void completions__flushed__tell_the_operation(void **state)
{
	struct rig *rig = *state;
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_EVENT event;

	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 9);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	data = completion(rig->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.status, DAT_DTO_ERR_FLUSHED);
	assert_int_equal(data.operation, DAT_DTO_RECEIVE);
}

/* D2-DTO-05 */
static void post__more_than_32_bits__refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET segs[2] = {dt_seg(&rig->x, 0, 8), dt_seg(&rig->x, 0, 8)};
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	rig_link(rig);
	segs[0].segment_length = segs[1].segment_length = 3u << 30;
	dt_fails_with(dat_ep_post_send(rig->a.ep, 2, segs, dt_cookie(1), 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	dt_fails(dat_ep_post_rdma_write(rig->a.ep, 2, segs, dt_cookie(1), &remote, 0),
		 DAT_LENGTH_ERROR);
}

/* D2-IMM-01 D2-IMM-18 D2-IMM-19 D2-VRB-01 D2-VRB-02 D2-IMM-03 D2-IMM-04 D2-IMM-05 D2-IMM-06 D2-IMM-07 D2-IMM-08 */
static void write_immediate__several_sizes__value_behind_the_bytes(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {0, 8, 4096, 60000};
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_EVENT event;

	rig_link(rig);
	if (lacks_immediate(rig))
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, sizes[i]);
		DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, sizes[i]);
		const DAT_UINT32 value = 0x11223344u * (DAT_UINT32)i;

		memset(rig->y.p, RIG_FILL, RIG_LEN);
		dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(7), 0));
		dt_ok(dat_ib_post_rdma_write_immed(rig->a.ep, 1, &seg, dt_cookie(5), &remote, value,
						   0));
		data = completion(rig->b.recv, DAT_IB_DTO_EVENT, &event);
		assert_memory_equal(rig->y.p, rig->x.p, sizes[i]);
		assert_int_equal(data.user_cookie.as_64, 7);
		assert_int_equal(data.operation, DAT_IB_DTO_RECV_IMMED);
		assert_int_equal(data.transfered_length, sizes[i]);
		assert_int_equal(extension(&event)->type, DAT_IB_RDMA_WRITE_IMMED_DATA);
		assert_int_equal(extension(&event)->status, DAT_OP_SUCCESS);
		assert_int_equal(extension(&event)->val.immed.data, value);
		data = completion(rig->a.request, DAT_IB_DTO_EVENT, &event);
		assert_int_equal(data.user_cookie.as_64, 5);
		assert_int_equal(data.operation, DAT_IB_DTO_RDMA_WRITE_IMMED);
		assert_int_equal(data.transfered_length, sizes[i]);
		assert_int_equal(extension(&event)->type, DAT_IB_RDMA_WRITE_IMMED);
	}
}

/* D2-IMM-13 D2-EXT-12 D2-EXT-13 */
static void write_immediate__bad_context__remote_access(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_EVENT event;

	rig_link(rig);
	if (lacks_immediate(rig))
		return;
	remote.rmr_context ^= 0x40000000;
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 9);
	dt_ok(dat_ib_post_rdma_write_immed(rig->a.ep, 1, &seg, dt_cookie(5), &remote, 1, 0));
	data = completion(rig->a.request, DAT_IB_DTO_EVENT, &event);
	assert_int_equal(data.status, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(extension(&event)->status, DAT_IB_OP_ERR);
	assert_int_equal(extension(&event)->type, DAT_IB_RDMA_WRITE_IMMED);
	data = completion(rig->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	if (dt_is_verbs()) /* rxe fails the Receive that it has looked at */
		assert_int_not_equal(data.status, DAT_DTO_SUCCESS);
	else
		assert_int_equal(data.status, DAT_DTO_ERR_FLUSHED);
}

/* Devices name the context in immediate data, which iWARP has not. */
static bool has_kills(void)
{
	return !dt_is_verbs() || !dt_is_iwarp();
}

/* The peer's context dies, unless the adapter says that it cannot do that. */
static bool send_invalidate(struct rig *rig, DAT_RMR_CONTEXT context, size_t len, DAT_UINT64 cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, len);
	DAT_RETURN ret = dat_ep_post_send_with_invalidate(rig->a.ep, 1, &seg, dt_cookie(cookie), 0,
							  DAT_TRUE, context);

	if (has_kills()) {
		dt_ok(ret);
		return true;
	}
	dt_fails(ret, DAT_MODEL_NOT_SUPPORTED); /* D2-INV-13 D2-VRB-07 */
	return false;
}

static void expect_invalidated(struct rig *rig, DAT_UINT64 cookie, DAT_RMR_CONTEXT context,
			       size_t len)
{
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_EVENT event;

	data = completion(rig->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.status, DAT_DTO_SUCCESS);
	assert_int_equal(data.user_cookie.as_64, cookie);
	assert_int_equal(data.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	assert_int_equal(data.rmr_context, context);
	assert_int_equal(data.transfered_length, len);
	data = completion(rig->a.request, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.status, DAT_DTO_SUCCESS);
	assert_int_equal(data.operation, DAT_DTO_SEND);
}

/* A Write through the dead context breaks the connection and changes nothing. */
static void expect_dead(struct rig *rig, const struct dt_buf *buf)
{
	memset(rig->y.p, RIG_FILL, 8);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(buf, 0, 8), 3, 0);
	expect_request(&rig->a, 3, DAT_DTO_ERR_REMOTE_ACCESS);
	dt_check_bytes(rig->y.p, 8, RIG_FILL);
}

/* D2-INV-01 D2-INV-04 D2-INV-06 D2-INV-07 D2-INV-11 D2-INV-13 D2-INV-14 D2-DTO-07 D2-DTO-10 D2-TCP-04
 * D2-SHM-04: several sizes, the Write in front of the first message arrives */
static void send_with_invalidate__region__dead_for_peers_alone(void **state)
{
	static const size_t sizes[] = {0, 8, 4096, 60000};
	struct rig *rig = *state;
	struct dt_buf region;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG,
			      &region);
		rig_link(rig);
		post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&region, 0, 8), 1, 0);
		expect_sent(&rig->a, 1, 8);
		assert_memory_equal(rig->y.p, rig->x.p, 8);
		post_recv(&rig->b, dt_seg(&region, 0, RIG_LEN), 9);
		if (!send_invalidate(rig, region.rkey, sizes[i], 2)) {
			dt_ok(dat_lmr_free(region.lmr));
			return;
		}
		expect_invalidated(rig, 9, region.rkey, sizes[i]);
		assert_memory_equal(rig->y.p, rig->x.p, sizes[i]);
		post_recv(&rig->b, dt_seg(&region, 0, 8), 10); /* local use goes on */
		post_send(&rig->a, dt_seg(&rig->x, 8, 8), 4, 0);
		expect_received(&rig->b, 10, 8);
		expect_sent(&rig->a, 4, 8);
		expect_dead(rig, &region);
		dt_ok(dat_lmr_free(region.lmr));
	}
}

/* D2-INV-07: the window is as after an unbind */
static void send_with_invalidate__window__unbound(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->y, 0, 64);
	struct dt_buf region;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &region);
	seg.lmr_context = region.lkey;
	rig_link(rig);
	dt_ok(dat_rmr_create(rig->ia.pz, &rmr));
	dt_ok(dat_rmr_bind(rmr, &seg, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, rig->b.ep, dt_cookie(5), 0,
			   &region.rkey));
	event = dt_event(rig->b.request);
	assert_int_equal(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 9);
	dt_fails(dat_lmr_free(region.lmr), DAT_INVALID_STATE);
	if (send_invalidate(rig, region.rkey, 8, 2)) {
		expect_invalidated(rig, 9, region.rkey, 8);
		dt_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_RMR_CONTEXT, &param));
		assert_int_equal(param.rmr_context, 0);
		dt_ok(dat_lmr_free(region.lmr));
		expect_dead(rig, &region);
		dt_ok(dat_rmr_free(rmr));
	} else {
		dt_ok(dat_rmr_free(rmr));
		dt_ok(dat_lmr_free(region.lmr));
	}
}

/* D2-INV-08 D2-TCP-05 */
static void send_with_invalidate__cannot_be_killed__both_sides_fail(void **state)
{
	struct rig *rig = *state;
	/* the last: devices mark a message that notifies by that value */
	DAT_RMR_CONTEXT contexts[] = {0, 0x3ffff, 0, 0x6f445357};
	struct dt_buf local, other;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	dt_lmr_create(&rig->ia, pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &other);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN,
		      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &local);
	contexts[2] = other.rkey;
	for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]) && has_kills(); i++) {
		rig_link(rig);
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 9);
		(void)send_invalidate(rig, contexts[i], 8, 2);
		dt_expect_dto(rig->b.recv, rig->b.ep, 9, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
		/* a device has acknowledged the message */
		expect_request(&rig->a, 2,
			       dt_is_verbs() ? DAT_DTO_SUCCESS : DAT_DTO_ERR_REMOTE_ACCESS);
		expect_ended(&rig->b, DAT_CONNECTION_EVENT_BROKEN);
	}
	dt_ok(dat_lmr_free(local.lmr));
	dt_ok(dat_lmr_free(other.lmr));
	dt_ok(dat_pz_free(pz));
}

/* D2-INV-02 D2-INV-03 */
static void send_with_invalidate__flag_false__plain_send(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_EVENT event;

	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 9);
	dt_ok(dat_ep_post_send_with_invalidate(rig->a.ep, 1, &seg, dt_cookie(2), 0, DAT_FALSE,
					       0xdeadbeef));
	data = completion(rig->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.operation, DAT_DTO_RECEIVE);
	assert_int_equal(data.rmr_context, 0);
	dt_fails_with(
		dat_ep_post_send_with_invalidate(rig->a.ep, -1, &seg, dt_cookie(2), 0, DAT_TRUE, 1),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_ep_post_send_with_invalidate(rig->a.ep, 1, &seg, dt_cookie(2), 0x80,
						       DAT_TRUE, 1),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
}

/* D2-INV-10: no completion of its own; the Send after it completes first */
static void send_with_invalidate__suppressed__completes_at_the_peer_alone(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_DTO_COMPLETION_EVENT_DATA data;
	struct dt_buf region;
	DAT_EVENT event;

	if (!has_kills())
		skip();
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &region);
	rig_link(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 9);
	post_recv(&rig->b, dt_seg(&rig->y, 8, 8), 10);
	dt_ok(dat_ep_post_send_with_invalidate(rig->a.ep, 1, &seg, dt_cookie(2),
					       DAT_COMPLETION_SUPPRESS_FLAG, DAT_TRUE,
					       region.rkey));
	post_send(&rig->a, dt_seg(&rig->x, 8, 8), 3, 0);
	data = completion(rig->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	data = completion(rig->b.recv, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.operation, DAT_DTO_RECEIVE);
	assert_int_equal(data.rmr_context, 0);
	expect_sent(&rig->a, 3, 8);
	dt_ok(dat_lmr_free(region.lmr));
}

/* D2-IMM-15 D2-INV-12 */
static void new_operations__shared_queue__take_its_receive(void **state)
{
	struct bench *bench = *state;
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET remote;
	struct dt_buf region;
	DAT_EVENT event;

	if (!has_kills())
		skip();
	bench_add(bench, 1);
	bench_give_many(bench, 1, 2);
	dt_lmr_create(&bench->ia, bench->ia.pz, bench->y.p, SRQ_SLOT, DAT_MEM_PRIV_ALL_FLAG,
		      &region);
	seg = dt_seg(&bench->x, 0, 8);
	remote = dt_rseg(&region, 0, 8);
	dt_ok(dat_ib_post_rdma_write_immed(bench->from[0].ep, 1, &seg, dt_cookie(5), &remote, 77,
					   0));
	data = completion(bench->to[0].recv, DAT_IB_DTO_EVENT, &event);
	assert_int_equal(data.user_cookie.as_64, 1);
	assert_int_equal(extension(&event)->val.immed.data, 77);
	assert_memory_equal(bench->y.p, bench->x.p, 8);
	dt_ok(dat_ep_post_send_with_invalidate(bench->from[0].ep, 1, &seg, dt_cookie(6), 0,
					       DAT_TRUE, region.rkey));
	data = completion(bench->to[0].recv, DAT_DTO_COMPLETION_EVENT, &event);
	assert_int_equal(data.user_cookie.as_64, 2);
	assert_int_equal(data.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	assert_int_equal(data.rmr_context, region.rkey);
	dt_ok(dat_lmr_free(region.lmr));
}

/* A word of b that peers may use by atomic operations, and no others. */
static void atomic_word(struct rig *rig, struct dt_buf *buf)
{
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, 4096,
		      (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
					   (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
		      buf);
}

/* D2-ATOM-01 D2-ATOM-02 D2-ATOM-03 D2-ATOM-04 D2-ATOM-05 D2-ATOM-11 D2-ATOM-26 D2-ATOM-27 D2-VRB-03 D2-VRB-04
 * D2-VRB-05 */
static void atomics__add_and_swap__value_before_comes_back(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 16);
	volatile uint64_t *target = (uint64_t *)(void *)rig->y.p;
	uint64_t *local = (uint64_t *)(void *)rig->x.p;
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_RMR_TRIPLET remote;
	struct dt_buf word;
	DAT_EVENT event;

	atomic_word(rig, &word);
	rig_link(rig);
	if (lacks_atomics(rig)) {
		dt_ok(dat_lmr_free(word.lmr)); /* D2-VRB-04: the privilege is accepted */
		return;
	}
	remote = dt_rseg(&word, 0, 8);
	*target = UINT64_MAX;
	local[1] = 77;
	dt_ok(dat_ib_post_fetch_and_add(rig->a.ep, 3, &seg, dt_cookie(1), &remote, 0));
	data = completion(rig->a.request, DAT_IB_DTO_EVENT, &event);
	assert_int_equal(data.status, DAT_DTO_SUCCESS);
	assert_int_equal(data.operation, DAT_IB_DTO_FETCH_ADD);
	assert_int_equal(data.transfered_length, 8);
	assert_int_equal(extension(&event)->type, DAT_IB_FETCH_AND_ADD);
	assert_int_equal(local[0], UINT64_MAX);
	assert_int_equal(local[1], 77);
	assert_int_equal(*target, 2);
	for (uint64_t compare = 1; compare <= 2; compare++) {
		dt_ok(dat_ib_post_cmp_and_swap(rig->a.ep, compare, 100, &seg, dt_cookie(2), &remote,
					       0));
		data = completion(rig->a.request, DAT_IB_DTO_EVENT, &event);
		assert_int_equal(data.operation, DAT_IB_DTO_CMP_SWAP);
		assert_int_equal(local[0], 2);
		assert_int_equal(*target, compare == 2 ? 100 : 2);
	}
	dt_ok(dat_lmr_free(word.lmr));
}

/* D2-ATOM-05 D2-ATOM-06 D2-ATOM-07 D2-ATOM-09 */
static void atomics__bad_arguments__refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 4, 8);
	DAT_EP_HANDLE ep = rig->a.ep;

	rig_link(rig);
	dt_fails_with(dat_ib_post_fetch_and_add(ep, 1, &seg, dt_cookie(1), &remote, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	dt_fails_with(dat_ib_post_cmp_and_swap(ep, 1, 2, &seg, dt_cookie(1), &remote, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_fails_with(dat_ib_post_fetch_and_add(ep, 1, NULL, dt_cookie(1), &remote, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_fails_with(dat_ib_post_cmp_and_swap(ep, 1, 2, &seg, dt_cookie(1), NULL, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	remote = dt_rseg(&rig->y, 0, 4);
	dt_fails(dat_ib_post_fetch_and_add(ep, 1, &seg, dt_cookie(1), &remote, 0),
		 DAT_LENGTH_ERROR);
}

/* D2-ATOM-11: remote read and write are not enough */
static void atomics__without_the_privilege__remote_access(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	DAT_DTO_COMPLETION_EVENT_DATA data;
	DAT_EVENT event;

	rig_link(rig);
	if (lacks_atomics(rig))
		return;
	dt_ok(dat_ib_post_fetch_and_add(rig->a.ep, 3, &seg, dt_cookie(1), &remote, 0));
	data = completion(rig->a.request, DAT_IB_DTO_EVENT, &event);
	assert_int_equal(data.status, DAT_DTO_ERR_REMOTE_ACCESS);
	dt_check_bytes(rig->y.p, 8, RIG_FILL);
}

/* D2-ATOM-13: more than the depth, in order; D2-ATOM-15: behind a Write */
static void atomics__many_behind_a_write__all_in_order(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_TRIPLET remote;
	struct dt_buf word, writable;
	DAT_EVENT event;

	rig->attr_a.max_rdma_read_out = 1;
	atomic_word(rig, &word);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, 4096, DAT_MEM_PRIV_ALL_FLAG, &writable);
	rig_link(rig);
	if (lacks_atomics(rig)) {
		dt_ok(dat_lmr_free(word.lmr));
		dt_ok(dat_lmr_free(writable.lmr));
		return;
	}
	remote = dt_rseg(&word, 0, 8);
	*(uint64_t *)(void *)rig->x.p = 1000;
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&writable, 0, 8), 1, 0);
	for (uint64_t i = 0; i < 8; i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 8 + 8 * i, 8);

		dt_ok(dat_ib_post_fetch_and_add(rig->a.ep, 1, &seg, dt_cookie(i), &remote, 0));
	}
	expect_sent(&rig->a, 1, 8);
	for (uint64_t i = 0; i < 8; i++) {
		completion(rig->a.request, DAT_IB_DTO_EVENT, &event);
		assert_int_equal(((uint64_t *)(void *)rig->x.p)[1 + i], 1000 + i);
	}
	dt_ok(dat_lmr_free(word.lmr));
	dt_ok(dat_lmr_free(writable.lmr));
}

/* D2-ATOM-25: the fenced message carries what the operation before it has fetched */
static void atomics__fenced_send__carries_the_fetched_value(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	uint64_t *sent = (void *)rig->x.p, *got = (void *)(rig->y.p + 8192);
	struct dt_buf word;
	DAT_EVENT event;

	if (!is_true(rig, "DAT_IB_FETCH_AND_ADD"))
		skip();
	atomic_word(rig, &word);
	rig_link(rig);
	*(uint64_t *)(void *)rig->y.p = 100;
	for (uint64_t i = 0; i < 50; i++) {
		DAT_RMR_TRIPLET remote = dt_rseg(&word, 0, 8);

		*sent = 0;
		post_recv(&rig->b, dt_seg(&rig->y, 8192, 8), i);
		dt_ok(dat_ib_post_fetch_and_add(rig->a.ep, 1, &seg, dt_cookie(i), &remote, 0));
		post_send(&rig->a, seg, i, DAT_COMPLETION_BARRIER_FENCE_FLAG);
		expect_received(&rig->b, i, 8);
		assert_int_equal(*got, 100 + i);
		completion(rig->a.request, DAT_IB_DTO_EVENT, &event);
		expect_sent(&rig->a, i, 8);
	}
	dt_ok(dat_lmr_free(word.lmr));
}

#define ADDERS 8u
#define ADDS 200u

static void *add_locally(void *word)
{
	for (unsigned int i = 0; i < ADDS; i++)
		__atomic_fetch_add((uint64_t *)word, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* D2-ATOM-17 D2-ATOM-18 D2-ATOM-21 D2-SHM-06 D2-SHM-07 */
static void atomics__eight_endpoints_and_a_thread__sum_is_exact(void **state)
{
	struct rig *rig = *state;
	struct dt_ep from[ADDERS], to[ADDERS];
	struct dt_buf word;
	pthread_t thread;
	DAT_EVENT event;

	if (!is_true(rig, "DAT_IB_FETCH_AND_ADD"))
		skip();
	atomic_word(rig, &word);
	*(uint64_t *)(void *)rig->y.p = 0;
	for (unsigned int i = 0; i < ADDERS; i++) {
		dt_ep_create(&rig->ia, rig->ia.pz, NULL, &from[i]);
		dt_ep_create(&rig->ia, rig->ia.pz, NULL, &to[i]);
		dt_ep_link(&rig->ia, &from[i], &to[i]);
	}
	assert_int_equal(pthread_create(&thread, NULL, add_locally, rig->y.p), 0);
	for (unsigned int n = 0; n < ADDS; n++) {
		for (unsigned int i = 0; i < ADDERS; i++) {
			DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 8 * (size_t)i, 8);
			DAT_RMR_TRIPLET remote = dt_rseg(&word, 0, 8);

			dt_ok(dat_ib_post_fetch_and_add(from[i].ep, 1, &seg, dt_cookie(n), &remote,
							0));
		}
		for (unsigned int i = 0; i < ADDERS; i++)
			assert_int_equal(
				completion(from[i].request, DAT_IB_DTO_EVENT, &event).status,
				DAT_DTO_SUCCESS);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(*(uint64_t *)(void *)rig->y.p, (ADDERS + 1) * ADDS);
	for (unsigned int i = 0; i < ADDERS; i++) {
		dt_ok(dat_ep_disconnect(from[i].ep, DAT_CLOSE_ABRUPT_FLAG));
		dt_ep_free(&from[i]);
		dt_ep_free(&to[i]);
	}
	dt_ok(dat_lmr_free(word.lmr));
}

/* D2-EXT-03 D2-EXT-04 D2-EXT-05 D2-GEN-19 */
static void extension_op__unknown_or_bad_handle__refused(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	assert_int_equal(dat_extension_op(rig->ia.pz, 999), 0xbfff0000);
	assert_int_equal(DAT_NOT_IMPLEMENTED, 0x3fff0000);
	dt_fails_with(dat_extension_op(NULL, DAT_IB_FETCH_AND_ADD_OP), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_ib_post_fetch_and_add(rig->ia.pz, 1, &seg, dt_cookie(1), &remote, 0),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

/* D2-COLL-02: each of the twenty, without arguments and with pointers that nobody may follow */
static void extension_op__collectives__not_implemented(void **state)
{
	struct rig *rig = *state;
	void *nowhere = DT_NEVER_A_HANDLE;

	for (int op = DAT_IB_COLLECTIVE_CREATE_MEMBER_OP; op <= DAT_IB_COLLECTIVE_BARRIER_OP;
	     op++) {
		dt_returns(dat_extension_op(rig->ia.ia, op), 0xbfff0000);
		dt_returns(dat_extension_op(rig->ia.pz, op, nowhere, nowhere, nowhere, nowhere),
			   0xbfff0000);
	}
}

/* D2-CR-01 D2-CR-02 D2-CR-04 D2-CR-06 */
static void cr_reject__with_data__they_reach_the_active_side(void **state)
{
	static const DAT_COUNT sizes[] = {0, 1, 48, 64};
	struct conn_fixture *f = *state;
	char data[64];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)i;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const DAT_CONNECTION_EVENT_DATA *found;
		DAT_CR_HANDLE cr;
		DAT_EVENT event;

		dt_connect(&f->ia, f->a.ep, f->listener.qual);
		cr = dt_request(&f->listener);
		dt_ok(dat_cr_reject(cr, sizes[i], sizes[i] ? data : NULL));
		event = dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
		found = &event.event_data.connect_event_data;
		assert_int_equal(found->private_data_size, sizes[i]);
		if (sizes[i])
			assert_memory_equal(found->private_data, data, (size_t)sizes[i]);
		dt_ok(dat_ep_reset(f->a.ep));
	}
}

/* D2-CR-03 */
static void cr_reject__bad_size_or_pointer__invalid_parameter(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CR_HANDLE cr;

	dt_connect(&f->ia, f->a.ep, f->listener.qual);
	cr = dt_request(&f->listener);
	dt_fails_with(dat_cr_reject(cr, -1, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_cr_reject(cr, f->ia.provider.max_private_data_size + 1, &cr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_cr_reject(cr, 1, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	dt_ok(dat_cr_reject(cr, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* D2-EP-03 D2-EP-04 */
static void ep_modify__communicator__own_or_zeros(void **state)
{
	struct conn_fixture *f = *state;
	DAT_EP_PARAM param;

	dt_ok(dat_ep_query(f->a.ep, DAT_EP_FIELD_ALL, &param));
	assert_int_equal(param.comm.type, SOCK_STREAM);
	assert_int_equal(param.comm.protocol, IPPROTO_TCP);
	dt_ok(dat_ep_modify(f->a.ep, DAT_EP_FIELD_COMM, &param));
	param.comm.protocol++;
	dt_fails(dat_ep_modify(f->a.ep, DAT_EP_FIELD_COMM, &param), DAT_COMM_NOT_SUPPORTED);
	memset(&param.comm, 0, sizeof(param.comm));
	dt_ok(dat_ep_modify(f->a.ep, DAT_EP_FIELD_COMM, &param));
}

/* D2-SRQ-09: a size that programs give is a watermark only where there is that watermark */
static void ep_create_with_srq__size_of_a_queue__never_refused(void **state)
{
	struct bench *bench = *state;
	bool has_hard = bench->ia.provider.srq_watermarks_supported & 0x100;
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	struct dt_ep ep;

	srq_ep_attr(&bench->ia, &attr);
	attr.max_recv_dtos = 5;
	srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &attr, &ep);
	dt_ok(dat_ep_query(ep.ep, DAT_EP_FIELD_ALL, &param));
	assert_int_equal(param.ep_attr.max_recv_dtos, has_hard ? 5 : DAT_HW_DEFAULT);
	dt_ep_free(&ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(ia_query__fields_of_2__filled),
		rig_test(ia_query__port__told_by_name),
		rig_test(completions__each_kind__tell_the_operation),
		rig_test(completions__flushed__tell_the_operation),
		rig_test(post__more_than_32_bits__refused),
		rig_test(write_immediate__several_sizes__value_behind_the_bytes),
		rig_test(write_immediate__bad_context__remote_access),
		rig_test(atomics__add_and_swap__value_before_comes_back),
		rig_test(atomics__bad_arguments__refused),
		rig_test(atomics__without_the_privilege__remote_access),
		rig_test(atomics__many_behind_a_write__all_in_order),
		rig_test(atomics__fenced_send__carries_the_fetched_value),
		rig_test(atomics__eight_endpoints_and_a_thread__sum_is_exact),
		rig_test(send_with_invalidate__region__dead_for_peers_alone),
		rig_test(send_with_invalidate__window__unbound),
		rig_test(send_with_invalidate__cannot_be_killed__both_sides_fail),
		rig_test(send_with_invalidate__flag_false__plain_send),
		rig_test(send_with_invalidate__suppressed__completes_at_the_peer_alone),
		bench_test(new_operations__shared_queue__take_its_receive),
		bench_test(ep_create_with_srq__size_of_a_queue__never_refused),
		rig_test(extension_op__unknown_or_bad_handle__refused),
		rig_test(extension_op__collectives__not_implemented),
		conn_test(cr_reject__with_data__they_reach_the_active_side),
		conn_test(cr_reject__bad_size_or_pointer__invalid_parameter),
		conn_test(ep_modify__communicator__own_or_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
