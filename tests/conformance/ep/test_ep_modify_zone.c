// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ep_modify of the protection zone of an endpoint that has used regions of its old zone:
 * regions that matched the old zone are checked against the new one, and match again when the old
 * zone is set again.
 */
#include "dto_util.h"

#define USES 40u    /* of one region before the zone is changed */
#define CALLS 3000u /* by one thread, after which it may use the fast path */

struct zones {
	struct rig *rig;
	DAT_PZ_HANDLE pz[2];
	struct dt_buf buf[2]; /* one in each zone */
};

static void zones_begin(struct zones *zones, struct rig *rig)
{
	*zones = (struct zones){.rig = rig};
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_pz_create(rig->ia.ia, &zones->pz[i]));
		dt_buf_create(&rig->ia, zones->pz[i], &zones->buf[i], 4096, DAT_MEM_PRIV_ALL_FLAG);
	}
}

static void zones_end(struct zones *zones)
{
	for (int i = 0; i < 2; i++)
		dt_mem_free(zones->buf[i].p, zones->buf[i].mapped);
}

static void move_to(struct zones *zones, struct dt_ep *ep, int zone)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	param.pz_handle = zones->pz[zone];
	dt_ok(dat_ep_modify(ep->ep, DAT_EP_FIELD_PZ_HANDLE, &param));
}

static DAT_RETURN try_recv(struct zones *zones, struct dt_ep *ep, int zone, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = dt_seg(&zones->buf[zone], 0, 64);

	return dat_ep_post_recv(ep->ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

/* EP-MODIFY-15 LMR-USE-02 */
static void ep_modify__zone_of_posted_receives__old_zone_refused(void **state)
{
	struct rig *rig = *state;
	struct zones zones;
	struct dt_ep ep;

	zones_begin(&zones, rig);
	dt_ep_create(&rig->ia, zones.pz[0], NULL, &ep);
	for (int round = 0; round < 4; round++) {
		const int zone = round % 2;

		for (uint64_t i = 0; i < 2; i++) {
			dt_ok(try_recv(&zones, &ep, zone, i));
			dt_fails_with(try_recv(&zones, &ep, !zone, i), DAT_PROTECTION_VIOLATION,
				      DAT_PROTECTION_WRITE);
		}
		dt_ok(try_recv(&zones, &ep, zone, 3)); /* the last region that matched */
		move_to(&zones, &ep, !zone);
		dt_fails_with(try_recv(&zones, &ep, zone, 4), DAT_PROTECTION_VIOLATION,
			      DAT_PROTECTION_WRITE);
	}
	zones_end(&zones);
}

static DAT_RETURN try_request(struct zones *zones, enum dto_kind kind, int zone, uint64_t cookie)
{
	struct rig *rig = zones->rig;
	DAT_LMR_TRIPLET seg = dt_seg(&zones->buf[zone], 0, 8);
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);

	return dto_post(kind, rig->a.ep, 1, &seg, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
}

/* Does one transfer of that kind between a's region of that zone and b. */
static void transfer(struct zones *zones, enum dto_kind kind, int zone)
{
	struct rig *rig = zones->rig;

	if (kind == DTO_SEND)
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	dt_ok(try_request(zones, kind, zone, 2));
	if (kind == DTO_RECV)
		post_send(&rig->b, dt_seg(&rig->y, 0, 8), 3, 0);
	dt_expect_dto(dto_evd(&rig->a, kind), rig->a.ep, 2, DAT_DTO_SUCCESS, DT_ANY_LEN);
	if (kind == DTO_SEND)
		expect_received(&rig->b, 1, 8);
	if (kind == DTO_RECV)
		expect_sent(&rig->b, 3, 8);
}

/* Lets only this thread call for the endpoint for a while. */
static void settle(struct dt_ep *ep)
{
	for (unsigned i = 0; i < CALLS; i++)
		assert_int_equal(dt_ep_state(ep->ep), DAT_EP_STATE_CONNECTED);
}

static void check_kind(struct zones *zones, enum dto_kind kind)
{
	struct rig *rig = zones->rig;

	for (int round = 0; round < 3; round++) {
		const int zone = round % 2;

		dt_returns(try_request(zones, kind, !zone, 4), dto_bad_zone(kind));
		for (unsigned i = 0; i < USES; i++)
			transfer(zones, kind, zone);
		dt_returns(try_request(zones, kind, !zone, 4), dto_bad_zone(kind));
		transfer(zones, kind, zone); /* the last region that matched */
		rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
		dt_ok(dat_ep_reset(rig->a.ep));
		dt_ok(dat_ep_reset(rig->b.ep));
		move_to(zones, &rig->a, !zone);
		dt_ep_link(&rig->ia, &rig->a, &rig->b);
		settle(&rig->a);
		dt_returns(try_request(zones, kind, zone, 5), dto_bad_zone(kind));
	}
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
}

/* EP-MODIFY-15 LMR-USE-02: used on a connection, then changed before the next one */
static void ep_modify__zone_between_two_connections__old_zone_refused(void **state)
{
	for (int kind = 0; kind < DTO_KINDS; kind++) {
		struct rig *rig = *state;
		struct zones zones;

		zones_begin(&zones, rig);
		dt_ep_create(&rig->ia, zones.pz[0], &rig->attr_a, &rig->a);
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
		dt_ep_link(&rig->ia, &rig->a, &rig->b);
		check_kind(&zones, (enum dto_kind)kind);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
		dt_buf_free(&zones.buf[0]);
		dt_buf_free(&zones.buf[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(ep_modify__zone_of_posted_receives__old_zone_refused),
		rig_test_bare(ep_modify__zone_between_two_connections__old_zone_refused),
	};

	return cmocka_run_group_tests_name("ep modify zone", tests, NULL, NULL);
}
