// The benchmark's scenarios in ns-3: FLOWS bulk transfers over one link. Prints the number of data
// packets that arrived.
//
// Two nodes only, which is the fastest way to simulate them: only the link is between the sockets.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>

using namespace ns3;

namespace {

constexpr uint32_t kSegment = 1448;  // payload bytes; 1500 B with headers and timestamps

}  // namespace

int main(int argc, char* argv[]) {
  uint32_t flows = 1;
  double mbit = 100;
  double rtt_ms = 40;
  double seconds = 100;
  std::string queue = "fifo";
  CommandLine line(__FILE__);
  line.AddValue("flows", "number of transfers", flows);
  line.AddValue("mbit", "rate of the link, Mbit/s", mbit);
  line.AddValue("rtt", "propagation round-trip time, ms", rtt_ms);
  line.AddValue("seconds", "simulated time", seconds);
  line.AddValue("queue", "fifo or codel", queue);
  line.Parse(argc, argv);

  const auto bdp_packets = std::max<uint32_t>(1, mbit * 1e6 * rtt_ms / 1e3 / 8 / 1500);
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(2 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(2 << 20));

  NodeContainer nodes;
  nodes.Create(2);
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbit * 1e6))));
  link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<int64_t>(rtt_ms * 500))));
  link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  NetDeviceContainer devices = link.Install(nodes);
  InternetStackHelper().Install(nodes);

  TrafficControlHelper control;
  const QueueSize limit(QueueSizeUnit::PACKETS, queue == "fifo" ? bdp_packets : 1000);
  control.SetRootQueueDisc(queue == "fifo" ? "ns3::FifoQueueDisc" : "ns3::CoDelQueueDisc",
                           "MaxSize", QueueSizeValue(limit));
  control.Install(devices.Get(0));

  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  const Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

  ApplicationContainer sinks;
  auto uniform = CreateObject<UniformRandomVariable>();
  for (uint32_t i = 0; i < flows; ++i) {
    const auto port = static_cast<uint16_t>(1024 + i);
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
    source.SetAttribute("SendSize", UintegerValue(kSegment));
    source.Install(nodes.Get(0)).Start(Seconds(flows == 1 ? 0.0 : uniform->GetValue(0, 1)));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sinks.Add(sink.Install(nodes.Get(1)));
  }

  Simulator::Stop(Seconds(seconds));
  Simulator::Run();
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < sinks.GetN(); ++i) {
    bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
  }
  std::cout << bytes / kSegment << std::endl;
  Simulator::Destroy();
}
