export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.title = "cwnd playground";
    frame.srcdoc = model.get("page");
    frame.style.cssText = `width: 100%; height: ${model.get("height")}; border: 0`;
    const hear = ({ source, data }) => {
      if (source !== frame.contentWindow || !Array.isArray(data?.cwnd)) return;
      model.set("scenarios", data.cwnd);
      model.save_changes();
    };
    addEventListener("message", hear);
    el.append(frame);
    return () => removeEventListener("message", hear);
  },
};
