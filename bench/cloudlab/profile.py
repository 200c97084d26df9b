# SPDX-License-Identifier: BSD-2-Clause
"""The six machines of Sandpaper's evaluation (paper, section 6).

Four clients, a proxy and an origin on one LAN. See bench/cloudlab/README.md.
"""

from geni import portal
from geni.rspec import pg

SUBNET = "10.10.1"
NETMASK = "255.255.255.0"
KBITS = 10 * 1000 * 1000
IMAGE = "urn:publicid:IDN+emulab.net+image+emulab-ops//UBUNTU24-64-STD"

context = portal.Context()
context.defineParameter(
    "clients", "Clients", portal.ParameterType.INTEGER, 4,
    longDescription="The paper's has four; load comes from the first.")
context.defineParameter(
    "hardware", "Hardware type", portal.ParameterType.NODETYPE, "c220g2",
    longDescription="Wisconsin's c220g2: two E5-2660 v3, Intel X520.")
context.defineParameter(
    "image", "Image", portal.ParameterType.IMAGE, IMAGE,
    longDescription="Debian or Ubuntu with Python 3.11 or later.")
parameters = context.bindParameters()
if parameters.clients < 1:
    context.reportError(portal.ParameterError(
        "at least one client is needed", ["clients"]))
context.verifyParameters()

request = context.makeRequestRSpec()
lan = request.LAN("lan")
lan.bandwidth = KBITS
names = [f"client{i}" for i in range(parameters.clients)]
for number, name in enumerate([*names, "proxy0", "origin0"], start=1):
    node = request.RawPC(name)
    node.hardware_type = parameters.hardware
    node.disk_image = parameters.image
    interface = node.addInterface("lan")
    interface.addAddress(pg.IPv4Address(f"{SUBNET}.{number}", NETMASK))
    lan.addInterface(interface)
context.printRequestRSpec()
