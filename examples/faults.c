// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program with five faults, for docs/checking.md. It runs without an error; with DAT_CHECK=1 each
 * fault is reported. One process sends itself three messages.
 *
 *   faults [-a ADAPTER]
 */
#include "tutorial.h"

#define SIZE 64

static char out[3][SIZE], in[3][SIZE];

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE evd; /* of everything */
static struct memory out_memory, in_memory;

static DAT_EP_HANDLE make_endpoint(void)
{
	DAT_EP_HANDLE ep;

	CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	return ep;
}

static void connect_both(DAT_EP_HANDLE active, DAT_EP_HANDLE passive)
{
	DAT_CONN_QUAL qualifier;
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	CHECK(dat_psp_create_any(ia, &qualifier, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	CHECK(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	CHECK(dat_ep_connect(active, attr.ia_address_ptr, qualifier, SECONDS(10), 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = expect(evd, DAT_CONNECTION_REQUEST_EVENT);
	CHECK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, passive, 0, NULL));
	expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	CHECK(dat_psp_free(psp));
}

static void post_receive(DAT_EP_HANDLE ep, int i)
{
	DAT_LMR_TRIPLET segment = piece(&in_memory, in[i == 2 ? 1 : i], SIZE); /* fault 1 */
	DAT_DTO_COOKIE cookie = {.as_64 = (DAT_UINT64)i};

	CHECK(dat_ep_post_recv(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_send(DAT_EP_HANDLE ep, int i)
{
	DAT_LMR_TRIPLET segment = piece(&out_memory, out[i], SIZE);
	DAT_DTO_COOKIE cookie = {.as_64 = (DAT_UINT64)i};

	CHECK(dat_ep_post_send(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	strcpy(out[i], "next message"); /* fault 2 */
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	DAT_EP_HANDLE active, passive;

	take_options(&argc, &argv);
	CHECK(dat_ia_open(adapter, 8, &async_evd, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_evd_create(ia, 4, DAT_HANDLE_NULL, /* fault 3 */
			     DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG, &evd));
	out_memory = register_memory(ia, pz, out, sizeof(out), DAT_MEM_PRIV_LOCAL_READ_FLAG);
	in_memory = register_memory(ia, pz, in, sizeof(in), DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	active = make_endpoint();
	passive = make_endpoint();
	connect_both(active, passive);
	for (int i = 0; i < 3; i++)
		post_receive(passive, i);
	for (int i = 0; i < 2; i++)
		post_send(active, i);
	for (int i = 0; i < 4; i++)
		expect(evd, DAT_DTO_COMPLETION_EVENT);
	CHECK(dat_lmr_free(in_memory.lmr)); /* fault 4 */
	CHECK(dat_ep_disconnect(active, DAT_CLOSE_GRACEFUL_FLAG));
	CHECK(dat_ep_free(active));
	CHECK(dat_ep_free(passive));
	dat_ep_free(passive); /* fault 5 */
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	puts("done");
	return 0;
}
