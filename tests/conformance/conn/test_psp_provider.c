// SPDX-License-Identifier: BSD-2-Clause
/*
 * Service points with DAT_PSP_PROVIDER_FLAG: the endpoint that the provider creates for each
 * request.
 */
#include <stdlib.h>

#include "conn_util.h"

struct offer {
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct dt_ep ep; /* offered with the request; its EVDs are those of the fixture's b */
};

static void listen_with_ep(struct conn_fixture *f, struct offer *offer)
{
	memset(offer, 0, sizeof(*offer));
	dt_ok(dat_psp_create_any(f->ia.ia, &offer->qual, f->listener.evd, DAT_PSP_PROVIDER_FLAG,
				 &offer->psp));
}

static void take_offer(struct conn_fixture *f, struct offer *offer)
{
	dt_connect(&f->ia, f->a.ep, offer->qual);
	offer->cr = dt_request(&f->listener);
	offer->ep = f->b;
	offer->ep.ep = conn_cr_query(offer->cr).local_ep_handle;
	assert_non_null(offer->ep.ep);
}

/* Gives the offered endpoint a zone and EVDs. */
static void configure(struct conn_fixture *f, struct offer *offer)
{
	DAT_EP_PARAM param = {
		.pz_handle = f->ia.pz,
		.recv_evd_handle = f->b.recv,
		.request_evd_handle = f->b.request,
		.connect_evd_handle = f->b.conn,
	};

	dt_ok(dat_ep_modify(offer->ep.ep,
			    DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				    DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				    DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			    &param));
}

static void accept_offer(struct conn_fixture *f, struct offer *offer)
{
	dt_ok(dat_cr_accept(offer->cr, DAT_HANDLE_NULL, 0, NULL));
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->b.conn, offer->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* PSP-CREATE-13 PSP-CREATE-12 PSP-CRANY-10 */
static void psp_create__flags__as_ep_creator_reports(void **state)
{
	struct conn_fixture *f = *state;
	struct offer offer;

	assert_int_equal(f->ia.provider.ep_creator, DAT_PSP_CREATES_EP_IFASKED);
	listen_with_ep(f, &offer); /* the fixture has a service point of the other kind */
}

/* PSP-CREATE-08 PSP-CREATE-09 CR-QUERY-05 EP-STATE-28 */
static void psp_provider__request__tentative_unconfigured_ep(void **state)
{
	struct conn_fixture *f = *state;
	struct offer offer;
	DAT_HANDLE_TYPE type;
	DAT_EP_PARAM param;

	listen_with_ep(f, &offer);
	take_offer(f, &offer);
	dt_ok(dat_get_handle_type(offer.ep.ep, &type));
	assert_int_equal(type, DAT_HANDLE_TYPE_EP);
	assert_int_equal(dt_ep_state(offer.ep.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	param = conn_ep_query(offer.ep.ep);
	assert_ptr_equal(param.ia_handle, f->ia.ia);
	assert_null(param.pz_handle);
	assert_null(param.recv_evd_handle);
	assert_null(param.request_evd_handle);
	assert_null(param.connect_evd_handle);
	assert_true(param.remote_port_qual == conn_cr_query(offer.cr).remote_port_qual);
	/* EP-RECV-30: it has room for Receives, but no EVD yet */
	assert_true(param.ep_attr.max_recv_dtos > 0);
	dt_fails_with(
		dat_ep_post_recv(offer.ep.ep, 0, NULL, dt_cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
		DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
}

/* PSP-CREATE-10 CR-ACCEPT-04 EP-STATE-29 CR-ACCEPT-02 */
static void psp_provider__configured_and_accepted__connects(void **state)
{
	struct conn_fixture *f = *state;
	struct offer offer;
	DAT_EP_ATTR attr;

	/* once for an ordinary active side, once for one with large queues */
	dt_ep_attr(&f->ia, &attr);
	attr.max_recv_dtos = 100;
	attr.max_request_dtos = 100;
	listen_with_ep(f, &offer);
	for (int is_large = 0; is_large < 2; is_large++) {
		if (is_large) {
			dt_ep_free(&f->a);
			dt_ep_create(&f->ia, f->ia.pz, &attr, &f->a);
		}
		take_offer(f, &offer);
		configure(f, &offer);
		accept_offer(f, &offer);
		assert_int_equal(dt_ep_state(offer.ep.ep), DAT_EP_STATE_CONNECTED);
		conn_transfer(f, &f->a, &offer.ep);
		dt_ok(dat_ep_free(offer.ep.ep));
		dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
}

/* PSP-CREATE-11 EP-MODIFY-53 CR-ACCEPT-23 */
static void psp_provider__changed_before_accept__changes_kept(void **state)
{
	struct conn_fixture *f = *state;
	struct offer offer;
	DAT_EP_PARAM param = {0};

	listen_with_ep(f, &offer);
	take_offer(f, &offer);
	configure(f, &offer);
	param.ep_attr.max_recv_dtos = 77;
	param.ep_attr.max_request_dtos = 55;
	dt_ok(dat_ep_modify(offer.ep.ep,
			    DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				    DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
			    &param));
	assert_int_equal(conn_ep_query(offer.ep.ep).ep_attr.max_recv_dtos, 77);
	for (uint64_t i = 0; i < 77; i++)
		conn_post_recv(offer.ep.ep, &f->buf, CONN_B_RECEIVES_AT, i);
	accept_offer(f, &offer);
	assert_int_equal(conn_ep_query(offer.ep.ep).ep_attr.max_recv_dtos, 77);
	for (uint64_t i = 0; i < 77; i += 11) {
		for (uint64_t j = i; j < i + 11; j++)
			conn_post_send(f->a.ep, &f->buf, CONN_A_SENDS_AT, j);
		for (uint64_t j = i; j < i + 11; j++) {
			dt_expect_dto(f->b.recv, offer.ep.ep, j, DAT_DTO_SUCCESS, CONN_BUF_LEN);
			dt_expect_dto(f->a.request, f->a.ep, j, DAT_DTO_SUCCESS, DT_ANY_LEN);
		}
	}
}

/* CR-REJECT-05 EP-FREE-15 EP-STATE-30 EP-STATE-71 EP-FREE-12 */
static void cr_reject__provider_ep__freed(void **state)
{
	struct conn_fixture *f = *state;
	struct offer offer;
	DAT_EP_STATE ep_state;

	listen_with_ep(f, &offer);
	take_offer(f, &offer);
	configure(f, &offer);
	conn_post_recv(offer.ep.ep, &f->buf, CONN_B_RECEIVES_AT, 1);
	dt_fails_with(dat_ep_free(offer.ep.ep), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_TENTCONNPENDING);
	dt_ok(dat_cr_reject(offer.cr));
	dt_fails_with(dat_ep_get_status(offer.ep.ep, &ep_state, NULL, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	dt_fails_with(dat_ep_free(offer.ep.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
	conn_stays_quiet(&f->b);
}

/* CR-ACCEPT-10 CR-ACCEPT-18 PSP-CREATE-11 EP-STATE-54 */
static void cr_accept__provider_ep_not_configured__refused_then_works(void **state)
{
	struct conn_fixture *f = *state;
	struct offer offer;
	DAT_EP_PARAM param = {0};

	listen_with_ep(f, &offer);
	take_offer(f, &offer);
	dt_fails_with(dat_cr_accept(offer.cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	param.connect_evd_handle = f->b.conn;
	dt_ok(dat_ep_modify(offer.ep.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	dt_fails_with(dat_cr_accept(offer.cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	param.connect_evd_handle = DAT_HANDLE_NULL;
	param.pz_handle = f->ia.pz;
	dt_ok(dat_ep_modify(offer.ep.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_PZ_HANDLE,
			    &param));
	dt_fails_with(dat_cr_accept(offer.cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	assert_int_equal(dt_ep_state(offer.ep.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	conn_stays_quiet(&f->a);
	configure(f, &offer);
	accept_offer(f, &offer);
	conn_transfer(f, &f->a, &offer.ep);
}

/* PSP-FREE-04 CR-REJECT-09 */
static void psp_free__offer_open__ep_stays(void **state)
{
	struct conn_fixture *f = *state;
	struct offer offer;

	for (int is_accept = 0; is_accept < 2; is_accept++) {
		listen_with_ep(f, &offer);
		take_offer(f, &offer);
		dt_ok(dat_psp_free(offer.psp));
		assert_int_equal(dt_ep_state(offer.ep.ep),
				 DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
		assert_ptr_equal(conn_cr_query(offer.cr).local_ep_handle, offer.ep.ep);
		if (!is_accept) {
			dt_ok(dat_cr_reject(offer.cr));
			conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
			dt_ok(dat_ep_reset(f->a.ep));
			continue;
		}
		configure(f, &offer);
		accept_offer(f, &offer);
		conn_transfer(f, &f->a, &offer.ep);
	}
}

/*
 * PSP-CREATE-06 PSP-CREATE-27: there is no room for the event; the endpoint created for it is freed
 * too
 */
static void psp_provider__evd_full__refused_and_no_endpoint_left(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_listener listener = {0};
	struct dt_ia other;
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};

	dt_ia_open(&other);
	listener.evd = dt_evd_create(&other, 1, DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG);
	dt_ok(dat_psp_create_any(other.ia, &listener.qual, listener.evd, DAT_PSP_PROVIDER_FLAG,
				 &listener.psp));
	dt_ok(dat_evd_post_se(listener.evd, &event));
	for (unsigned int i = 0; i < 3; i++) {
		dt_connect(&f->ia, f->a.ep, listener.qual);
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
	}
	dt_no_event(other.async);
	dt_ok(dat_evd_dequeue(listener.evd, &event));
	dt_no_event(listener.evd);
	dt_unlisten(&listener);
	dt_ia_close(&other); /* refused if an endpoint were left */
}

/* PSP-CREATE-27 EP-CREATE-69: no endpoint of the adapter is left */
static void psp_provider__no_endpoint_left__refused_until_one_is_free(void **state)
{
	struct conn_fixture *f = *state;
	DAT_EP_HANDLE *eps = calloc((size_t)f->ia.attr.max_eps + 1, sizeof(eps[0]));
	DAT_COUNT count = 0;
	struct offer offer;
	DAT_RETURN ret;

	assert_non_null(eps);
	listen_with_ep(f, &offer);
	do {
		ret = dat_ep_create(f->ia.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				    DAT_HANDLE_NULL, NULL, &eps[count]);
	} while (ret == DAT_SUCCESS && ++count <= f->ia.attr.max_eps);
	dt_fails(ret, DAT_INSUFFICIENT_RESOURCES);
	dt_connect(&f->ia, f->a.ep, offer.qual);
	conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	dt_ok(dat_ep_reset(f->a.ep));
	dt_stays_empty(f->listener.evd);
	dt_no_event(f->ia.async);
	dt_ok(dat_ep_free(eps[0]));
	take_offer(f, &offer);
	configure(f, &offer);
	accept_offer(f, &offer);
	free(eps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(psp_create__flags__as_ep_creator_reports),
		conn_test(psp_provider__request__tentative_unconfigured_ep),
		conn_test(psp_provider__configured_and_accepted__connects),
		conn_test(psp_provider__changed_before_accept__changes_kept),
		conn_test(cr_reject__provider_ep__freed),
		conn_test(cr_accept__provider_ep_not_configured__refused_then_works),
		conn_test(psp_free__offer_open__ep_stays),
		conn_test(psp_provider__evd_full__refused_and_no_endpoint_left),
		conn_test(psp_provider__no_endpoint_left__refused_until_one_is_free),
	};

	return cmocka_run_group_tests_name("psp_provider", tests, NULL, NULL);
}
